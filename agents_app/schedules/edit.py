"""Changes of schedules that users request; each is committed together with its event."""

import re
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import count
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from agents_app.clock import HOST_ZONE
from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import SKILL_FILE, Agent, Firing, Schedule, Trigger, WorkItem
from agents_app.runs import Request, enqueue_in_transaction, lifecycle, lock_agents, schedule_states
from agents_app.schedules.due import next_fire_after_pause
from agents_app.schedules.plan import fire_after_pause, parse_schedule_text, set_next_fire
from agents_app.triggers import IntervalTrigger, UntimedTrigger, parse_trigger

S = Schedule.State
# A change of these columns changes the fire times.
TIME_COLUMNS = {"text", "timezone", "gap", "overlap_hour", "anchor"}
MOST_JITTER_PERCENT = 10
# Much longer times overflow a timedelta.
MOST_DAYS = 366
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The values of a new schedule; None: the default."""

    text: str
    name: str = ""
    prompt: str = ""
    timezone: str | None = None
    overlap: str | None = None
    catch_up: str = "last"
    catch_up_window_seconds: float = 3600.0
    jitter_percent: float = 0.0
    jitter_seconds: float = 0.0
    gap: str = "shift"
    overlap_hour: str = "first"
    anchor: str = ""
    pause_after_failures: int = 0


def create(agent: Agent, draft: Draft, by: str, now: datetime) -> Schedule:
    """Commit a new schedule. Refuses the name of an active or paused schedule.

    Without a name the schedule gets an unused one, so that the same text can be used twice.
    """
    checked = draft_schedule(agent, draft, now)

    def write() -> Schedule:
        # A copy: the transaction may be repeated, and a saved object has a primary key.
        schedule = copy(checked)
        lock_agents([agent.pk])
        if draft.name:
            _claim_name(schedule, now)
        else:
            schedule.name = _unused_name(schedule.name, agent)
        schedule.save(force_insert=True)
        _record_event("schedule.created", schedule, by, now)
        return schedule

    return in_transaction(write)


def draft_schedule(agent: Agent, draft: Draft, now: datetime) -> Schedule:
    """The schedule that `create` would write, checked and with its next fire time."""
    values = {field.name: getattr(draft, field.name) for field in fields(draft)}
    values["timezone"] = draft.timezone or agent.timezone or HOST_ZONE
    values["overlap"] = draft.overlap or Schedule.Overlap.SKIP
    values["name"] = draft.name or _name_from(draft.text)
    schedule = Schedule(tenant_id=agent.tenant_id, agent=agent, **values)
    parse_schedule_text(schedule, now)
    if schedule.one_shot and draft.overlap is None:
        # A one-shot has no later firing, so its work waits for a slot.
        schedule.overlap = Schedule.Overlap.QUEUE
    set_next_fire(schedule, now)
    _check(schedule)
    return schedule


def edit(known: Schedule, changes: Mapping[str, Any], by: str, now: datetime) -> Schedule:
    """Commit changes of columns; the next fire time changes only with the time columns."""

    def write() -> Schedule:
        schedule = Schedule.objects.select_related("agent").get(pk=known.pk)
        if schedule.state not in {S.ACTIVE, S.PAUSED}:
            raise Refused(f"a {schedule.state} schedule cannot be edited: create a new one")
        _refuse_if_defined_in_file(schedule, "change it")
        known_name = schedule.name
        for column, value in changes.items():
            setattr(schedule, column, value)
        columns = set(changes)
        if columns & {"text", "timezone"}:
            parse_schedule_text(schedule, now)
        if columns & TIME_COLUMNS:
            set_next_fire(schedule, now)
            columns |= {"expression", "timezone", "one_shot", "interval_seconds", "next_fire_at"}
        _check(schedule)
        if schedule.name != known_name:
            lock_agents([schedule.agent_id])
            _claim_name(schedule, now)
        schedule.save(update_fields=[*columns, "updated_at"])
        _record_event("schedule.edited", schedule, by, now, ", ".join(sorted(changes)))
        return schedule

    return in_transaction(write)


def pause(
    schedule: Schedule, by: str, now: datetime, note: str = "", until: datetime | None = None
) -> bool:
    if until is not None and until <= now:
        raise Refused(f"{until:%Y-%m-%d %H:%M %Z} is in the past: give a time in the future")

    def change() -> bool:
        return schedule_states.pause_schedule(schedule.pk, now, note, until)

    return _commit_with_event("schedule.paused", change, schedule, by, now, note)


def resume(known: Schedule, by: str, now: datetime, *, at_once: bool = False) -> bool:
    """Resume a paused schedule; a one-shot whose time passed during the pause fires now."""

    def change() -> bool:
        schedule = _lock_and_read(known)
        trigger = parse_trigger(schedule.expression)
        if isinstance(trigger, UntimedTrigger):
            raise Refused(trigger.refusal)
        upcoming = next_fire_after_pause(schedule, now, at_once=at_once)
        return schedule_states.resume_schedule(schedule.pk, now, S.PAUSED, upcoming)

    return _commit_with_event("schedule.resumed", change, known, by, now)


def cancel(known: Schedule, by: str, now: datetime) -> int:
    """Cancel the schedule with its undecided firings and queued work; returns their number.

    Refuses a schedule that a file defines: the next change of the file would bring it back.
    """

    def write() -> int:
        schedule = _lock_and_read(known)
        _refuse_if_defined_in_file(schedule, "remove it")
        if not schedule_states.cancel_schedule(schedule.pk, now, schedule.state):
            raise Refused(f"{schedule.name} was canceled already")
        _record_event("schedule.canceled", schedule, by, now)
        return _cancel_work(schedule, now)

    return in_transaction(write)


def retry(known: Schedule, by: str, now: datetime) -> WorkItem:
    """Enqueue the last failed work again; a failed one-shot becomes active."""

    def write() -> WorkItem:
        schedule = _lock_and_read(known)
        failed = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.FAILED)
        _refuse_retry(schedule, failed)
        if schedule.state in {S.FAILED, S.PAUSED}:
            # The retry replaces the firing of a one-shot.
            upcoming = None if schedule.one_shot else fire_after_pause(schedule, now)
            schedule_states.resume_schedule(schedule.pk, now, schedule.state, upcoming)
        _record_event("schedule.retried", schedule, by, now)
        return enqueue_in_transaction(
            _retry_request(schedule, failed.order_by("-id").first(), by), now
        )

    return in_transaction(write)


# --- parts --------------------------------------------------------------------------------


def _lock_and_read(known: Schedule) -> Schedule:
    """Lock the agent, then read the schedule."""
    lock_agents([known.agent_id])
    return Schedule.objects.select_related("agent").get(pk=known.pk)


def is_defined_in_file(schedule: Schedule) -> bool:
    """Whether a file of the project defines the schedule now; its agent must have been read."""
    in_use = schedule.state in {S.ACTIVE, S.PAUSED} and schedule.agent.removed_at is None
    return in_use and schedule.source == Schedule.Source.FILE


def _refuse_if_defined_in_file(schedule: Schedule, verb: str) -> None:
    if not is_defined_in_file(schedule):
        return
    file = schedule.agent.definition_file
    project = schedule.agent.tenant.project_directory
    if project and file.is_relative_to(project):
        file = file.relative_to(project)
    of_skill = schedule.agent.file_name == SKILL_FILE
    other = "the config.toml beside it" if of_skill else "the fleet file that names it"
    raise Refused(
        f"{schedule.name} is defined in {file.as_posix()} or {other}: {verb} there, "
        "or pause the schedule"
    )


def _check(schedule: Schedule) -> None:
    """Refuse values that a form would refuse, for all callers."""
    trigger = parse_trigger(schedule.expression)
    is_interval = isinstance(trigger, IntervalTrigger)
    if schedule.jitter_percent and not is_interval:
        raise Refused("a jitter in percent needs an interval; give a duration, such as 30s")
    if not 0 <= schedule.jitter_percent <= MOST_JITTER_PERCENT:
        raise Refused(f"a jitter is 0 to {MOST_JITTER_PERCENT} percent, or a duration")
    for name in ("jitter_seconds", "catch_up_window_seconds"):
        if not 0 <= getattr(schedule, name) <= MOST_DAYS * 86_400:
            raise Refused(f"{name}: must be from 0 to {MOST_DAYS} days")
    if schedule.anchor and not is_interval:
        raise Refused("only an interval has an anchor: this schedule names its times itself")
    try:
        schedule.clean_fields(exclude=["agent", "tenant"])
    except ValidationError as error:
        first = next(iter(error.message_dict.items()))
        raise Refused(f"{first[0]}: {' '.join(first[1])}") from None


def _claim_name(schedule: Schedule, now: datetime) -> None:
    known = Schedule.objects.filter(agent=schedule.agent, name=schedule.name).first()
    if known is None:
        return
    if known.state in {S.ACTIVE, S.PAUSED}:
        raise Refused(
            f"{schedule.agent.name} has a schedule {known.name!r} already ({known.state}): "
            "choose another name, or cancel the existing schedule first"
        )
    # The old schedule keeps its history under another name.
    old_name = f"{known.name[: LONGEST_NAME - 20]}.{known.pk}"
    Schedule.objects.filter(pk=known.pk).update(name=old_name, updated_at=now)


def _unused_name(name: str, agent: Agent) -> str:
    taken = set(agent.schedules.filter(name__startswith=name).values_list("name", flat=True))
    names = (f"{name}-{number}" for number in count(2))
    return name if name not in taken else next(other for other in names if other not in taken)


def _name_from(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "schedule"


def _refuse_retry(schedule: Schedule, failed: "QuerySet[WorkItem]") -> None:
    if schedule.state == S.CANCELED:
        raise Refused("a canceled schedule cannot be retried: create a new one")
    undone = schedule.firings.exclude(outcome__in=["", "polling", "started", "queued"])
    has_failed = schedule.state == S.FAILED or failed.exists() or undone.exists()
    if schedule.state == S.COMPLETED or not has_failed:
        raise Refused(
            f"no work of {schedule.name} failed and no firing was skipped: nothing to retry"
        )


def _cancel_work(schedule: Schedule, now: datetime) -> int:
    # The poll of a work source finds that its firing was skipped, and releases what it claimed.
    undecided = schedule.firings.filter(outcome__in=["", "polling"])
    firings = undecided.update(outcome=Firing.Outcome.SKIPPED, reason=Firing.Reason.DISABLED)
    queued = WorkItem.objects.filter(schedule=schedule, state=WorkItem.State.QUEUED)
    reason = "its schedule was canceled"
    items = list(queued.order_by("pk").values_list("pk", flat=True))
    return firings + sum(lifecycle.drop_work(item, now, reason) for item in items)


def _retry_request(schedule: Schedule, item: WorkItem | None, by: str) -> Request:
    return Request(
        tenant_id=schedule.tenant_id,
        agent_id=schedule.agent_id,
        trigger=Trigger.SCHEDULE,
        prompt=item.prompt if item else schedule.prompt,
        context=item.context if item else "",
        requested_by=f"{by}, retry of schedule {schedule.name}"[:200],
        schedule_id=schedule.pk,
    )


def _commit_with_event(
    name: str,
    change: Callable[[], bool],
    schedule: Schedule,
    by: str,
    now: datetime,
    note: str = "",
) -> bool:
    """Commit the change together with its event; without a change there is no event."""

    def change_and_record() -> bool:
        changed = change()
        if changed:
            _record_event(name, schedule, by, now, note)
        return changed

    return in_transaction(change_and_record)


def _record_event(name: str, schedule: Schedule, by: str, now: datetime, note: str = "") -> None:
    about = f"{schedule.name}: {by}: {note}" if note else f"{schedule.name}: {by}"
    owner = (schedule.tenant_id, schedule.agent_id)
    journal.record(journal.JournalEntry(name, now, *owner, detail=about, actor=by))
