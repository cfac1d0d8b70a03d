"""The firings of a schedule with the reason of their outcome and the state of their work."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from agents_app.models import Firing, Run, Schedule, WorkItem
from agents_app.runs import SKIPPED_BECAUSE
from agents_app.schedules.plan import LATE
from agents_app.triggers.preview import clock

NO_WORK = "the agent's runs of that time are no longer kept"
_RUN_COLUMNS = ("work_item", "state", "started_at", "finished_at", "exit_code", "error", "attempt")


@dataclass(frozen=True, slots=True)
class Work:
    """A work item of a schedule, and its last run."""

    work_item: int
    asked_at: datetime
    asked_by: str
    state: str
    reason: str
    # The position in its agent's queue, from 1.
    position: int | None
    run: int | None
    run_state: str
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A firing: `because` explains its outcome, `became` the state of its work."""

    due_at: datetime
    local: str
    outcome: str
    reason: str
    late_seconds: float
    because: str
    became: str
    work: Work | None


def read_history(schedule: Schedule, limit: int) -> tuple[HistoryEntry, ...]:
    """The latest firings of a schedule, the latest first."""
    return read_entries(schedule, schedule.firings.order_by("-due_at")[:limit])


def read_retried_work(schedule: Schedule, limit: int) -> tuple[Work, ...]:
    """Work items of a schedule without a firing: people retried it. The latest first."""
    ran = Run.objects.filter(schedule=schedule, work_item__firing__isnull=True)
    waits = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.QUEUED)
    keys = {*ran.order_by("-pk").values_list("work_item", flat=True)[:limit]}
    keys |= {*waits.filter(firing__isnull=True).values_list("pk", flat=True)}
    items = WorkItem.objects.filter(pk__in=keys).prefetch_related(_tries("runs")).order_by("-pk")
    found = list(items[:limit])
    places = _places(schedule.agent_id, found)
    return tuple(describe_work(item, places, schedule) for item in found)


def read_entries(schedule: Schedule, firings: QuerySet[Firing]) -> tuple[HistoryEntry, ...]:
    """The firings as entries: two queries, and a third one if some of their work is queued."""
    joined = firings.select_related("work_item").prefetch_related(_tries("work_item__runs"))
    found = [(firing, _work_item(firing)) for firing in joined]
    places = _places(schedule.agent_id, [item for _, item in found if item])
    return tuple(_told(schedule, firing, item, places) for firing, item in found)


def _tries(path: str) -> "Prefetch[Any]":
    return Prefetch(path, Run.objects.only(*_RUN_COLUMNS).order_by("pk"), to_attr="tries")


def _work_item(firing: Firing) -> Any:
    return getattr(firing, "work_item", None)


def _places(agent_id: int, items: Iterable[WorkItem]) -> dict[int, int]:
    """The positions of the queued work items in the queue of their agent."""
    if not any(item.state == WorkItem.State.QUEUED for item in items):
        return {}
    queue = WorkItem.objects.filter(agent=agent_id, state=WorkItem.State.QUEUED)
    keys = queue.order_by("pk").values_list("pk", flat=True)
    return {key: place for place, key in enumerate(keys, start=1)}


def _told(
    schedule: Schedule, firing: Firing, item: WorkItem | None, places: dict[int, int]
) -> HistoryEntry:
    work = describe_work(item, places, schedule) if item else None
    asked = firing.outcome in {Firing.Outcome.STARTED, Firing.Outcome.QUEUED}
    return HistoryEntry(
        due_at=firing.due_at,
        local=clock(firing.due_at, schedule.timezone),
        outcome=firing.outcome or "undecided",
        reason=firing.reason,
        late_seconds=firing.late_seconds,
        because=explain_outcome(firing, schedule.timezone),
        became=work.text if work else NO_WORK if asked else "",
        work=work,
    )


def explain_outcome(firing: Firing, timezone: str) -> str:
    """The reason of a firing's outcome as a sentence."""
    decided = clock(firing.decide_at, timezone)
    late = (
        f", {format_lateness(firing.late_seconds)} late"
        if firing.late_seconds > LATE.seconds
        else ""
    )
    if firing.outcome == Firing.Outcome.UNDECIDED:
        return f"recorded{late}, and it is decided at {decided}"
    if firing.outcome == Firing.Outcome.STARTED:
        return f"a slot was free{late}"
    if firing.outcome == Firing.Outcome.QUEUED:
        return f"no slot was free, so its work was queued{late}"
    if firing.outcome == Firing.Outcome.FAILED:
        return "its work could not be asked for; the log says why (firing.undecidable)"
    return SKIPPED_BECAUSE[firing.reason]


def format_lateness(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


# --- what became of it ----------------------------------------------------------------------


def describe_work(item: Any, places: dict[int, int], schedule: Schedule) -> Work:
    """Requires the runs of the work item in its attribute `tries`, the oldest first."""
    run: Run | None = item.tries[-1] if item.tries else None
    return Work(
        work_item=item.pk,
        asked_at=item.created_at,
        asked_by=item.requested_by,
        state=str(item.state),
        reason=item.reason,
        position=places.get(item.pk),
        run=run.pk if run else None,
        run_state=str(run.state) if run else "",
        started_at=run.started_at if run else None,
        finished_at=run.finished_at if run else None,
        exit_code=run.exit_code if run else None,
        error=run.error if run else "",
        text=_became(item, run, places, schedule),
    )


def _became(item: WorkItem, run: Run | None, places: dict[int, int], schedule: Schedule) -> str:
    if item.state == WorkItem.State.QUEUED:
        return _waiting(item, run, places, schedule)
    if item.state in {WorkItem.State.DROPPED, WorkItem.State.CLEARED}:
        return f"{item.state}: {item.reason}" if item.reason else str(item.state)
    if run is None:
        return f"{item.state}: {item.reason}" if item.reason else NO_WORK
    if run.state == Run.State.PENDING:
        return f"run {run.pk} has a slot and waits for a worker"
    if run.state == Run.State.RUNNING:
        return f"run {run.pk} goes on since {clock(run.started_at, schedule.timezone)}"
    return _ending(run)


def _waiting(item: WorkItem, run: Run | None, places: dict[int, int], schedule: Schedule) -> str:
    place = f"waits in the queue, {places.get(item.pk, 1)} of {len(places)}"
    if run is None:
        return place
    again = clock(item.available_at, schedule.timezone)
    return f"{_ending(run)}; tries again, not before {again}: {place}"


def _ending(run: Run) -> str:
    state = str(run.state).replace("_", " ")
    if run.error:
        return f"run {run.pk} {state}: {run.error}"
    return f"run {run.pk} {state}" + (f" (exit code {run.exit_code})" if run.exit_code else "")
