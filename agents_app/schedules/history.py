"""The firings of a schedule with the reason of their outcome and the state of their work."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Prefetch, QuerySet

from agents_app.console import HistoryEntry, ScheduledWork
from agents_app.models import Firing, Run, Schedule, WorkItem
from agents_app.runs import SKIP_REASON_TEXTS
from agents_app.triggers import LATE, format_lateness
from agents_app.triggers.preview import clock

NO_WORK = "the agent's runs of that time are no longer kept"
_RUN_COLUMNS = ("work_item", "state", "started_at", "finished_at", "exit_code", "error", "attempt")


def read_history(schedule: Schedule, limit: int) -> tuple[HistoryEntry, ...]:
    """The latest firings of a schedule, the latest first."""
    return read_entries(schedule, schedule.firings.order_by("-due_at")[:limit])


def read_firings(firings: QuerySet[Firing]) -> tuple[tuple[Schedule, HistoryEntry], ...]:
    """Firings of several schedules, each with its schedule; the order stays."""
    joined = firings.select_related("schedule__agent", "work_item")
    found = [(f, _work_item(f)) for f in joined.prefetch_related(_prefetch_runs("work_item__runs"))]
    work: dict[int, list[WorkItem]] = {}
    for firing, item in found:
        work.setdefault(firing.schedule.agent_id, []).extend([item] if item else [])
    positions = {agent_id: _queue_positions(agent_id, items) for agent_id, items in work.items()}
    return tuple(
        (s := firing.schedule, _history_entry(s, firing, item, positions[s.agent_id]))
        for firing, item in found
    )


def read_retried_work(schedule: Schedule, limit: int) -> tuple[ScheduledWork, ...]:
    """The work items that retries of the schedule created, which have no firing; latest first."""
    ran = Run.objects.filter(schedule=schedule, work_item__firing__isnull=True)
    queued = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.QUEUED)
    keys = {*ran.order_by("-pk").values_list("work_item", flat=True)[:limit]}
    keys |= {*queued.filter(firing__isnull=True).values_list("pk", flat=True)}
    items = (
        WorkItem.objects.filter(pk__in=keys)
        .prefetch_related(_prefetch_runs("runs"))
        .order_by("-pk")
    )
    found = list(items[:limit])
    positions = _queue_positions(schedule.agent_id, found)
    return tuple(describe_work(item, positions, schedule) for item in found)


def read_entries(schedule: Schedule, firings: QuerySet[Firing]) -> tuple[HistoryEntry, ...]:
    """The firings as entries: two queries, and a third one if some of their work is queued."""
    joined = firings.select_related("work_item").prefetch_related(_prefetch_runs("work_item__runs"))
    found = [(firing, _work_item(firing)) for firing in joined]
    positions = _queue_positions(schedule.agent_id, [item for _, item in found if item])
    return tuple(_history_entry(schedule, firing, item, positions) for firing, item in found)


def _prefetch_runs(path: str) -> "Prefetch[Any]":
    return Prefetch(path, Run.objects.only(*_RUN_COLUMNS).order_by("pk"), to_attr="ordered_runs")


def _work_item(firing: Firing) -> Any:
    return getattr(firing, "work_item", None)


def _queue_positions(agent_id: int, items: Iterable[WorkItem]) -> dict[int, int]:
    """The positions of the queued work items in the queue of their agent."""
    if not any(item.state == WorkItem.State.QUEUED for item in items):
        return {}
    queue = WorkItem.objects.filter(agent=agent_id, state=WorkItem.State.QUEUED)
    keys = queue.order_by("pk").values_list("pk", flat=True)
    return {key: position for position, key in enumerate(keys, start=1)}


def _history_entry(
    schedule: Schedule, firing: Firing, item: WorkItem | None, positions: dict[int, int]
) -> HistoryEntry:
    work = describe_work(item, positions, schedule) if item else None
    has_work = firing.outcome in {Firing.Outcome.STARTED, Firing.Outcome.QUEUED}
    return HistoryEntry(
        due_at=firing.due_at,
        local=clock(firing.due_at, schedule.timezone),
        outcome=firing.outcome or "undecided",
        reason=firing.reason,
        late_seconds=firing.late_seconds,
        outcome_text=explain_outcome(firing, schedule.timezone),
        work_text=work.text if work else NO_WORK if has_work else "",
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
    if firing.outcome == Firing.Outcome.POLLING:
        return f"its work source is being asked for an item{late}"
    if firing.outcome == Firing.Outcome.STARTED:
        return f"a slot was free{late}"
    if firing.outcome == Firing.Outcome.QUEUED:
        return f"no slot was free, so its work was queued{late}"
    if firing.outcome == Firing.Outcome.FAILED:
        return "its work item could not be created; the log entry firing.undecidable has the error"
    return SKIP_REASON_TEXTS[firing.reason]


# --- work -----------------------------------------------------------------------------------


def describe_work(item: Any, positions: dict[int, int], schedule: Schedule) -> ScheduledWork:
    """Requires the runs of the work item in its attribute `ordered_runs`, the oldest first."""
    run: Run | None = item.ordered_runs[-1] if item.ordered_runs else None
    return ScheduledWork(
        work_item=item.pk,
        asked_at=item.created_at,
        asked_by=item.requested_by,
        state=str(item.state),
        reason=item.reason,
        position=positions.get(item.pk),
        run=run.pk if run else None,
        run_state=str(run.state) if run else "",
        started_at=run.started_at if run else None,
        finished_at=run.finished_at if run else None,
        exit_code=run.exit_code if run else None,
        error=run.error if run else "",
        text=_work_text(item, run, positions, schedule),
    )


def _work_text(
    item: WorkItem, run: Run | None, positions: dict[int, int], schedule: Schedule
) -> str:
    if item.state == WorkItem.State.QUEUED:
        return _queued_text(item, run, positions, schedule)
    if item.state in {WorkItem.State.DROPPED, WorkItem.State.CLEARED}:
        return f"{item.state}: {item.reason}" if item.reason else str(item.state)
    if run is None:
        return f"{item.state}: {item.reason}" if item.reason else NO_WORK
    if run.state == Run.State.PENDING:
        return f"run {run.pk} has a slot and waits for a worker"
    if run.state == Run.State.RUNNING:
        return f"run {run.pk} has been running since {clock(run.started_at, schedule.timezone)}"
    return _ended_text(run)


def _queued_text(
    item: WorkItem, run: Run | None, positions: dict[int, int], schedule: Schedule
) -> str:
    position = f"waits in the queue, {positions.get(item.pk, 1)} of {len(positions)}"
    if run is None:
        return position
    retry_at = clock(item.available_at, schedule.timezone)
    return f"{_ended_text(run)}; will be retried, not before {retry_at}: {position}"


def _ended_text(run: Run) -> str:
    state = str(run.state).replace("_", " ")
    if run.error:
        return f"run {run.pk} {state}: {run.error}"
    return f"run {run.pk} {state}" + (f" (exit code {run.exit_code})" if run.exit_code else "")
