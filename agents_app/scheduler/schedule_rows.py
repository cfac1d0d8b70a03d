"""The states of schedules for programs, read from and written to the rows of Drover."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import cast

from agents_app.database import in_transaction
from agents_app.errors import Refused, SchedulerError
from agents_app.launch import build_prompt, definition_of
from agents_app.models import DEFAULT_TENANT, Agent, Schedule, Trigger
from agents_app.names import closest
from agents_app.runs import find_free_slots, lock_agent
from agents_app.scheduler.values import (
    AgentScheduleInfo,
    ScheduleCheckResult,
    ScheduleSkipReason,
    ScheduleState,
    ScheduleStateUpdates,
    ScheduleStatus,
)
from agents_app.schedules import edit, read_live_states
from agents_app.triggers import UntimedTrigger, parse_trigger

BY = "Python"
STATUSES = ("idle", "disabled")
S = Schedule.State


# --- lookup ---------------------------------------------------------------------------------


def find_agent(name: str) -> Agent:
    """An agent of the scheduler; raises SchedulerError with a similar name or all names."""
    agents = Agent.objects.filter(tenant__name=DEFAULT_TENANT, removed_at__isnull=True)
    found = agents.filter(name=name).first()
    if found is None:
        known = sorted(agents.values_list("name", flat=True))
        raise SchedulerError(f"there is no agent {name!r}: {_other_names(name, known)}")
    return found


def find_schedule(agent_name: str, name: str) -> Schedule:
    agent = find_agent(agent_name)
    schedules = agent.schedules.select_related("agent").exclude(state=S.CANCELED)
    found = schedules.filter(name=name).first()
    if found is None:
        known = sorted(schedules.values_list("name", flat=True))
        raise SchedulerError(
            f"the agent {agent_name!r} has no schedule {name!r}: {_other_names(name, known)}"
        )
    return found


def _other_names(name: str, known: list[str]) -> str:
    if close := closest(name, known):
        return f"did you mean {close!r}?"
    return f"there are {', '.join(known)}" if known else "there are none"


# --- reading --------------------------------------------------------------------------------


def read_state(agent: str, schedule: str) -> ScheduleState:
    return _state_of(find_schedule(agent, schedule))


def read_states(agent: str) -> dict[str, ScheduleState]:
    schedules = find_agent(agent).schedules.select_related("agent").exclude(state=S.CANCELED)
    return {schedule.name: _state_of(schedule) for schedule in schedules.order_by("name")}


def _state_of(schedule: Schedule) -> ScheduleState:
    return ScheduleState(
        status=_status(schedule),
        last_run_at=schedule.last_completed_at,
        next_run_at=schedule.next_fire_at,
        last_error=schedule.last_error or None,
    )


def _status(schedule: Schedule) -> ScheduleStatus:
    if read_live_states([schedule.pk]):
        return "running"
    is_due_by_time = schedule.state == S.ACTIVE and schedule.agent.enabled
    return "idle" if is_due_by_time else "disabled"


def read_infos() -> list[AgentScheduleInfo]:
    """The active and paused schedules of all agents of the scheduler."""
    schedules = Schedule.objects.filter(
        tenant__name=DEFAULT_TENANT, agent__removed_at__isnull=True, state__in=[S.ACTIVE, S.PAUSED]
    )
    return [
        AgentScheduleInfo(
            *(each.agent.name, each.name, each.text, each.timezone, each.prompt),
            next_run_at=each.next_fire_at if each.state == S.ACTIVE else None,
        )
        for each in schedules.select_related("agent").order_by("agent__name", "name")
    ]


def check_now(agent: str, name: str, now: datetime) -> ScheduleCheckResult:
    """The decision about a firing at this moment, without the firing."""
    schedule = find_schedule(agent, name)
    reason = in_transaction(lambda: _skip_reason(schedule, now))
    return ScheduleCheckResult(agent, name, reason is None, reason)


def _skip_reason(schedule: Schedule, now: datetime) -> ScheduleSkipReason | None:
    """Locks the agent, as the decision about a firing does."""
    if isinstance(parse_trigger(schedule.expression), UntimedTrigger):
        return "unsupported_type"
    if schedule.state != S.ACTIVE:
        return "disabled"
    gate = lock_agent(schedule.agent_id)
    if gate is None or gate.blocked_reason:
        return cast("ScheduleSkipReason", str(gate.blocked_reason) if gate else "disabled")
    waits = schedule.overlap in {Schedule.Overlap.QUEUE, Schedule.Overlap.CANCEL_OTHER}
    live = read_live_states([schedule.pk]).get(schedule.pk, set())
    if schedule.overlap == Schedule.Overlap.QUEUE_ONE:
        live, waits = live & {"queued"}, False
    if live and not waits:
        return "already_running"
    takes_slot = schedule.overlap == Schedule.Overlap.SKIP
    if takes_slot and find_free_slots(schedule.agent_id, gate) is None:
        return "at_capacity"
    is_due = schedule.next_fire_at is not None and schedule.next_fire_at <= now
    return None if is_due else "not_due"


def prompt_of(agent: str, name: str, work_item: object) -> str:
    """The prompt of a run of the schedule; commands in the instructions are not executed."""
    schedule = find_schedule(agent, name)
    definition = definition_of(schedule.agent_id, schedule.agent.revision)
    instructions = "" if definition.body_is_script else definition.instructions
    context = _as_context(work_item)
    return build_prompt(
        instructions, definition.params, Trigger.SCHEDULE.value, schedule.prompt, context
    )


def _as_context(work_item: object) -> str:
    if work_item is None or isinstance(work_item, str):
        return work_item or ""
    if not isinstance(work_item, Mapping):
        raise SchedulerError(
            f"work_item: expected a text or a table, not {type(work_item).__name__}"
        )
    try:
        return json.dumps(dict(work_item), indent=2, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SchedulerError(f"work_item: {error}") from None


# --- writing --------------------------------------------------------------------------------


def change_state(
    agent: str, name: str, updates: ScheduleStateUpdates, now: datetime
) -> ScheduleState:
    """Pause or resume the schedule, then set its times and its error."""
    _check_updates(updates)
    schedule = find_schedule(agent, name)
    try:
        _set_status(schedule, updates.get("status"), now)
    except Refused as error:
        raise SchedulerError(f"{agent}/{name}: {error}") from error
    columns: dict[str, object] = {}
    if "last_run_at" in updates:
        columns["last_completed_at"] = updates["last_run_at"]
    if "next_run_at" in updates:
        columns["next_fire_at"] = updates["next_run_at"]
    if "last_error" in updates:
        columns["last_error"] = (updates["last_error"] or "")[:500]
    if columns:
        row = Schedule.objects.filter(pk=schedule.pk)
        in_transaction(lambda: row.update(**columns, updated_at=now))
    return read_state(agent, name)


def _set_status(schedule: Schedule, status: str | None, now: datetime) -> None:
    if status == "disabled" and schedule.state == S.ACTIVE:
        edit.pause(schedule, BY, now, "disabled by update_schedule_state")
    elif status == "idle" and schedule.state == S.PAUSED:
        edit.resume(schedule, BY, now)
    elif status == "idle" and schedule.state != S.ACTIVE:
        raise Refused(f"the schedule is {schedule.state}; change the agent's definition")


def _check_updates(updates: Mapping[str, object]) -> None:
    if not isinstance(updates, Mapping) or not updates:
        raise SchedulerError("updates: give at least one value to change")
    known = tuple(ScheduleStateUpdates.__annotations__)
    for key, value in updates.items():
        if key not in known:
            close = closest(str(key), known)
            hint = f"did you mean {close!r}?" if close else f"expected {', '.join(known)}"
            raise SchedulerError(f"updates: there is no value {key!r}: {hint}")
        if key == "status" and value not in STATUSES:
            raise SchedulerError(
                f"status: expected {' or '.join(STATUSES)}, not {value!r}; "
                "'running' follows from runs"
            )
        if key.endswith("_at") and not _is_moment(value):
            raise SchedulerError(f"{key}: expected a datetime with a time zone, not {value!r}")
        if key == "last_error" and not (value is None or isinstance(value, str)):
            raise SchedulerError(f"last_error: expected a text or None, not {value!r}")


def _is_moment(value: object) -> bool:
    return value is None or (isinstance(value, datetime) and value.tzinfo is not None)
