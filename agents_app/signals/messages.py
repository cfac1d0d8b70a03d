"""Messages to agents: a running run reads them; without one, a message becomes a work item.

A message for standard input belongs to the run from the moment it is taken. It counts as read when
the program has read it from the pipe or, in a container, when the engine has accepted it. If the
run or its worker dies before that, the message is free again, so no message is lost.
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

MAX_MESSAGE_LENGTH = 100_000
MAX_READ_AT_ONCE = 100


def send(agent: Agent, text: str, sender: str, now: datetime) -> Message:
    """Store a message for the running run of an agent, or as a work item; committed on return."""
    if not text.strip():
        raise Refused("the message is empty: write a text")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise Refused(f"a message has at most {MAX_MESSAGE_LENGTH} characters")
    return in_transaction(partial(_send, agent, text, sender, now))


def _send(agent: Agent, text: str, sender: str, now: datetime) -> Message:
    # Locked, so that no run starts or ends before the message is stored.
    state = lock_agent(agent.pk)
    if state is None:
        raise NotFound("there is no such agent")
    if state.block and state.block.refuses_work:
        raise Refused(state.block.refusal(agent.pk))
    message = Message.objects.create(
        tenant_id=agent.tenant_id, agent=agent, text=text, sender=sender[:200], created_at=now
    )
    owner = (agent.tenant_id, agent.pk)
    journal.record(
        journal.JournalEntry("agent.messaged", now, *owner, detail=f"by {sender}", actor=sender)
    )
    if not _has_running_run(agent.pk):
        _enqueue(message, now)
    return message


def unread(run: Run) -> list[Message]:
    """The unread messages to the agent of the run, oldest first."""
    found = Message.objects.filter(agent=run.agent_id, read_at__isnull=True, run__isnull=True)
    return list(found.order_by("pk")[:MAX_READ_AT_ONCE])


def read(run: Run, now: datetime) -> list[Message]:
    """Read the unread messages. Each is returned once, also if several runs read at once."""
    if not unread(run):
        return []
    return in_transaction(
        lambda: [message for message in unread(run) if _take(message, now, run_id=run.pk)]
    )


def as_line(text: str) -> bytes:
    """A message as a line on standard input: the text, or a JSON string if it has several lines.

    A text that begins with a quote is written as JSON, too, so that readers can tell the forms
    apart."""
    plain = "\n" not in text and "\r" not in text and not text.startswith('"')
    return f"{text if plain else json.dumps(text)}\n".encode(errors="replace")


def take(run: Run) -> list[Message]:
    """Take the next messages for standard input of the run, oldest first.

    Includes messages that it took before, if the connection broke before the answer."""
    free_or_its_own = Q(run__isnull=True) | Q(run=run)
    found = Message.objects.filter(free_or_its_own, agent=run.agent_id, read_at__isnull=True)
    return in_transaction(partial(_take_for, run, found)) if found.exists() else []


def _take_for(run: Run, found: QuerySet[Message]) -> list[Message]:
    # Locked in order of their ids: of several workers only one gets a message.
    taken = list(found.select_for_update().order_by("pk")[:MAX_READ_AT_ONCE])
    Message.objects.filter(pk__in=[message.pk for message in taken]).update(run=run)
    return taken


def record_delivered(run_id: int, message_ids: Sequence[int], now: datetime) -> int:
    """Record that the run has read these messages; returns how many."""
    taken = _taken(run_id, message_ids)
    return in_transaction(lambda: taken.update(read_at=now)) if message_ids else 0


def give_back(run_id: int, message_ids: Sequence[int]) -> int:
    """Free messages that the run has not read, for another run or for the sweep."""
    taken = _taken(run_id, message_ids)
    return in_transaction(lambda: taken.update(run=None)) if message_ids else 0


def settle(
    run_id: int, delivered: Sequence[int], undelivered: Sequence[int], now: datetime
) -> None:
    """The run has ended: record what it has read and free the rest."""
    record_delivered(run_id, delivered, now)
    give_back(run_id, undelivered)


def _taken(run_id: int, message_ids: Sequence[int]) -> QuerySet[Message]:
    return Message.objects.filter(pk__in=message_ids, run=run_id, read_at__isnull=True)


def sweep(now: datetime) -> int:
    """Enqueue messages to agents without a running run, so that none is lost; returns how many."""
    _free_messages_of_ended_runs()
    running = Run.objects.filter(agent=OuterRef("agent"), state=Run.State.RUNNING)
    unread_ones = Message.objects.filter(read_at__isnull=True).exclude(Exists(running))
    alive = unread_ones.filter(agent__removed_at__isnull=True, agent__scale__gt=0)
    waiting = list(alive.filter(tenant__disabled_at__isnull=True).order_by("pk")[:1000])
    return sum(in_transaction(partial(_sweep, message, now)) for message in waiting)


def _free_messages_of_ended_runs() -> None:
    """Also of runs whose worker died or that another worker finished."""
    taken = Message.objects.filter(read_at__isnull=True, run__isnull=False)
    left = taken.exclude(run__state=Run.State.RUNNING).values_list("pk", flat=True)
    if numbers := list(left[:1000]):
        freed = Message.objects.filter(pk__in=numbers, read_at__isnull=True)
        in_transaction(lambda: freed.update(run=None))


def _sweep(message: Message, now: datetime) -> bool:
    state = lock_agent(message.agent_id)
    if state is None or state.refuses_work or _has_running_run(message.agent_id):
        return False
    return _free(message).exists() and _enqueue(message, now)


def _enqueue(message: Message, now: datetime) -> bool:
    request = Request(
        tenant_id=message.tenant_id,
        agent_id=message.agent_id,
        trigger=Trigger.MESSAGE,
        prompt=message.text,
        requested_by=message.sender,
    )
    item = dispatch.enqueue_in_transaction(request, now)
    message.work_item = item
    return _take(message, now, work_item_id=item.pk)


def _take(message: Message, now: datetime, **owner: int) -> bool:
    return _free(message).update(read_at=now, **owner) == 1


def _free(message: Message) -> QuerySet[Message]:
    return Message.objects.filter(pk=message.pk, read_at__isnull=True, run__isnull=True)


def _has_running_run(agent_id: int) -> bool:
    """Only a running run can read a message. A pending one does not count: it may never look."""
    return Run.objects.filter(agent=agent_id, state=Run.State.RUNNING).exists()
