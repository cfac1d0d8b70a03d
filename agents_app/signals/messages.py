"""What agents are told: a live run reads it, and otherwise it becomes work.

What a run hears on its standard input is the run's own from the moment it is taken, and read only
when it was said to its end: fetched from the pipe, or, of a container, taken by its engine. So
whoever dies in between loses nothing: what an ended run has not read is nobody's again.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.events import journal
from agents_app.models import Agent, Message, Run, Trigger
from agents_app.runs import Request, dispatch, lock_agent

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
    gate = lock_agent(agent.pk)
    if gate is None:
        raise NotFound("there is no such agent")
    if gate.block and gate.block.refuses_work:
        raise Refused(gate.block.refusal)
    message = Message.objects.create(
        tenant_id=agent.tenant_id, agent=agent, text=text, sender=sender[:200], created_at=now
    )
    journal.record(
        journal.JournalEntry(
            "agent.messaged", now, agent.tenant_id, agent.pk, detail=f"by {sender}"
        )
    )
    if not _running(agent.pk):
        _become_work(message, now)
    return message


def unread(run: Run) -> list[Message]:
    """Oldest first."""
    waiting = Message.objects.filter(agent=run.agent_id, read_at__isnull=True, run__isnull=True)
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


def take(run: Run) -> list[Message]:
    """What the run is to be told next, and nobody else: oldest first.

    Also what it had taken already, if that was not heard of because the connection broke."""
    free_or_its_own = Q(run__isnull=True) | Q(run=run)
    found = Message.objects.filter(free_or_its_own, agent=run.agent_id, read_at__isnull=True)
    return in_transaction(partial(_take_for, run, found)) if found.exists() else []


def _take_for(run: Run, found: QuerySet[Message]) -> list[Message]:
    # Locked in their order: of several workers that look at the same moment one gets a message.
    taken = list(found.select_for_update().order_by("pk")[:MOST_READ_AT_ONCE])
    Message.objects.filter(pk__in=[message.pk for message in taken]).update(run=run)
    return taken


def note_said(run_id: int, numbers: Sequence[int], now: datetime) -> int:
    """The run was told these to their end."""
    mine = _taken(run_id, numbers)
    return in_transaction(lambda: mine.update(read_at=now)) if numbers else 0


def give_back(run_id: int, numbers: Sequence[int]) -> int:
    """What the run was not told to its end: another one reads it, or the sweep makes work of it."""
    mine = _taken(run_id, numbers)
    return in_transaction(lambda: mine.update(run=None)) if numbers else 0


def settle(run_id: int, said: Sequence[int], unsaid: Sequence[int], now: datetime) -> None:
    """The run has ended, and so has what it could be told."""
    note_said(run_id, said, now)
    give_back(run_id, unsaid)


def _taken(run_id: int, numbers: Sequence[int]) -> QuerySet[Message]:
    return Message.objects.filter(pk__in=numbers, run=run_id, read_at__isnull=True)


def sweep(now: datetime) -> int:
    """What a run left unread when it ended becomes work, so that nothing is lost."""
    _free_what_the_dead_took()
    running = Run.objects.filter(agent=OuterRef("agent"), state=Run.State.RUNNING)
    left = Message.objects.filter(read_at__isnull=True).exclude(Exists(running))
    alive = left.filter(agent__removed_at__isnull=True, agent__scale__gt=0)
    waiting = list(alive.filter(tenant__disabled_at__isnull=True).order_by("pk")[:1000])
    return sum(in_transaction(partial(_sweep, message, now)) for message in waiting)


def _free_what_the_dead_took() -> None:
    """Runs whose worker died, or that another worker has seen to their end."""
    taken = Message.objects.filter(read_at__isnull=True, run__isnull=False)
    left = taken.exclude(run__state=Run.State.RUNNING).values_list("pk", flat=True)
    if numbers := list(left[:1000]):
        freed = Message.objects.filter(pk__in=numbers, read_at__isnull=True)
        in_transaction(lambda: freed.update(run=None))


def _sweep(message: Message, now: datetime) -> bool:
    gate = lock_agent(message.agent_id)
    if gate is None or gate.refuses_work or _running(message.agent_id):
        return False
    return _free(message).exists() and _become_work(message, now)


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
    return _free(message).update(read_at=now, **owner) == 1


def _free(message: Message) -> QuerySet[Message]:
    return Message.objects.filter(pk=message.pk, read_at__isnull=True, run__isnull=True)


def _running(agent_id: int) -> bool:
    """One that is pending may be about to start, but it has its own work to do and may not look:
    only a run that can read right now keeps a message from becoming work."""
    return Run.objects.filter(agent=agent_id, state=Run.State.RUNNING).exists()
