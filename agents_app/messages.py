"""What agents are told: a live run reads it, and otherwise it becomes work."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db.models import Exists, OuterRef

from agents_app import dispatch, journal
from agents_app.commit import in_transaction
from agents_app.dispatch import TAKES_NO_WORK, Request
from agents_app.errors import NotFound, Refused
from agents_app.models import Agent, Message, Run, Trigger
from agents_app.slots import read_gate

LONGEST_MESSAGE = 100_000
MOST_READ_AT_ONCE = 100


def send(agent: Agent, text: str, sender: str, now: datetime) -> Message:
    """Durable when it returns: in the inbox of a run that goes on, or in the agent's queue."""
    if not text.strip():
        raise Refused("an empty message says nothing: write a text")
    if len(text) > LONGEST_MESSAGE:
        raise Refused(f"a message has at most {LONGEST_MESSAGE} characters")
    return in_transaction(partial(_send, agent, text, sender, now))


def _send(agent: Agent, text: str, sender: str, now: datetime) -> Message:
    # Locked until it is stored: no run ends or begins between the look and the decision.
    gate = read_gate(agent.pk)
    if gate is None:
        raise NotFound("there is no such agent")
    if gate.closed_because in TAKES_NO_WORK:
        raise Refused(f"the agent is {gate.closed_because.replace('_', ' ')}: it reads nothing")
    message = Message.objects.create(
        tenant_id=agent.tenant_id, agent=agent, text=text, sender=sender[:200], created_at=now
    )
    journal.record(
        journal.Entry("agent.messaged", now, agent.tenant_id, agent.pk, detail=f"by {sender}")
    )
    if not _running(agent.pk):
        _become_work(message, now)
    return message


def unread(run: Run) -> list[Message]:
    """Oldest first."""
    waiting = Message.objects.filter(agent=run.agent_id, read_at__isnull=True)
    return list(waiting.order_by("pk")[:MOST_READ_AT_ONCE])


def read(run: Run, now: datetime) -> list[Message]:
    """Each message once: of several runs that look at the same moment one gets it."""
    if not unread(run):
        return []
    return in_transaction(
        lambda: [message for message in unread(run) if _take(message, now, run_id=run.pk)]
    )


def as_line(text: str) -> bytes:
    """For a program's standard input: as it is, or as a JSON string if it would not be one line.

    A text that begins like one is written as JSON, too, so that a reader can tell them apart."""
    plain = "\n" not in text and "\r" not in text and not text.startswith('"')
    return f"{text if plain else json.dumps(text)}\n".encode(errors="replace")


def give_back(run_id: int, numbers: Sequence[int]) -> int:
    """What the run was not told to its end, because it ended: the sweep makes work of it."""
    mine = Message.objects.filter(pk__in=numbers, run=run_id)
    return in_transaction(lambda: mine.update(read_at=None, run=None)) if numbers else 0


def sweep(now: datetime) -> int:
    """What a run left unread when it ended becomes work, so that nothing is lost."""
    running = Run.objects.filter(agent=OuterRef("agent"), state=Run.State.RUNNING)
    left = Message.objects.filter(read_at__isnull=True).exclude(Exists(running))
    alive = left.filter(agent__removed_at__isnull=True, agent__scale__gt=0)
    waiting = list(alive.filter(tenant__disabled_at__isnull=True).order_by("pk")[:1000])
    return sum(in_transaction(partial(_sweep, message, now)) for message in waiting)


def _sweep(message: Message, now: datetime) -> bool:
    gate = read_gate(message.agent_id)
    if gate is None or gate.closed_because in TAKES_NO_WORK or _running(message.agent_id):
        return False
    return Message.objects.filter(pk=message.pk, read_at__isnull=True).exists() and _become_work(
        message, now
    )


def _become_work(message: Message, now: datetime) -> bool:
    request = Request(
        tenant_id=message.tenant_id,
        agent_id=message.agent_id,
        trigger=Trigger.MESSAGE,
        prompt=message.text,
        requested_by=message.sender,
    )
    item = dispatch.enqueue_here(request, now)
    message.work_item = item
    return _take(message, now, work_item_id=item.pk)


def _take(message: Message, now: datetime, **owner: int) -> bool:
    waiting = Message.objects.filter(pk=message.pk, read_at__isnull=True)
    return waiting.update(read_at=now, **owner) == 1


def _running(agent_id: int) -> bool:
    """One that is pending may be about to start, but it has its own work to do and may not look:
    only a run that can read right now keeps a message from becoming work."""
    return Run.objects.filter(agent=agent_id, state=Run.State.RUNNING).exists()
