"""What an agent asks of the schedules of its tenant, in a line, and the block it is answered with.

[/schedule create in 1 hour: review the deploy ...]
OK: scheduled #17 in 1 hour (2026-05-08 14:23) → research
  message: review the deploy status and report regressions
[END SCHEDULE]
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agents_app.errors import DroverError, Refused, TriggerParseError
from agents_app.models import Agent, Schedule
from agents_app.schedules import edit
from agents_app.triggers import ScheduleLine, ScheduleLineError, parse_schedule_line, zone

COMMAND = "/schedule"
OPEN = (Schedule.State.ACTIVE, Schedule.State.PAUSED)
# An agent that schedules itself twice in each run would not end with less.
MOST_OPEN = 100
MOST_LISTED = 50
LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ScheduleLineAnswer:
    ok: bool
    text: str
    schedule_id: int | None = None


def run_schedule_line(agent: Agent, line: str, now: datetime, by: str = "") -> ScheduleLineAnswer:
    """`line` with or without the word /schedule before it; a refusal is an answer, too."""
    command = line if line.split(maxsplit=1)[:1] == [COMMAND] else f"{COMMAND} {line}"
    writ = parse_schedule_line(command, agent.name, lambda key: _of_tenant(agent, key) is not None)
    if isinstance(writ, ScheduleLineError):
        return ScheduleLineAnswer(
            False, block(command, f"ERR: {writ.message}", *writ.accepted.splitlines())
        )
    said = f"{COMMAND} create {writ.phrase}: {writ.message}" if writ.op == "create" else command
    try:
        schedule, lines = ACTS[writ.op](agent, writ, by or f"agent {agent.name}", now)
    except TriggerParseError as error:
        return ScheduleLineAnswer(False, block(said, f"ERR: {error}", *error.accepted.splitlines()))
    except DroverError as error:
        return ScheduleLineAnswer(False, block(said, f"ERR: {error}"))
    return ScheduleLineAnswer(True, block(said, *lines), schedule.pk if schedule else None)


def block(said: str, first: str, *more: str) -> str:
    lines = (f"[{_short(said)}]", first, *(f"  {line}" for line in more), "[END SCHEDULE]")
    return "\n".join(lines) + "\n"


# --- the acts -------------------------------------------------------------------------------

Done = tuple[Schedule | None, tuple[str, ...]]


def _create(agent: Agent, writ: ScheduleLine, by: str, now: datetime) -> Done:
    if agent.schedules.filter(state__in=OPEN).count() >= MOST_OPEN:
        raise Refused(f"{agent.name} has {MOST_OPEN} schedules: cancel some before you add another")
    draft = edit.Draft(text=writ.phrase, prompt=writ.message)
    schedule = edit.create(agent, draft, by, now)
    about = f"OK: scheduled #{schedule.pk} {writ.phrase} ({_next(schedule)}) → {agent.name}"
    return schedule, (about, f"message: {_one_line(writ.message)}")


def _list(agent: Agent, _writ: ScheduleLine, _by: str, _now: datetime) -> Done:
    found = Schedule.objects.filter(tenant=agent.tenant_id, state__in=OPEN)
    shown = found.select_related("agent").order_by("pk")[:MOST_LISTED]
    count = found.count()
    lines = [_listed(schedule) for schedule in shown]
    if count > MOST_LISTED:
        lines.append(f"... and {count - MOST_LISTED} more")
    return None, (f"OK: {count} schedule{'' if count == 1 else 's'}", *lines)


def _cancel(agent: Agent, writ: ScheduleLine, by: str, now: datetime) -> Done:
    schedule = _known(agent, writ)
    edit.cancel(schedule, by, now)
    return schedule, (f"OK: canceled #{schedule.pk} {schedule.text}",)


def _pause(agent: Agent, writ: ScheduleLine, by: str, now: datetime) -> Done:
    schedule = _known(agent, writ)
    if not edit.pause(schedule, by, now):
        raise Refused(f"#{schedule.pk} is {schedule.state}: only an active one can be paused")
    return schedule, (f"OK: paused #{schedule.pk} {schedule.text}",)


def _resume(agent: Agent, writ: ScheduleLine, by: str, now: datetime) -> Done:
    schedule = _known(agent, writ)
    if not edit.resume(schedule, by, now):
        raise Refused(f"#{schedule.pk} is {schedule.state}: only a paused one can be resumed")
    schedule.refresh_from_db()
    return schedule, (f"OK: resumed #{schedule.pk} {schedule.text} ({_next(schedule)})",)


ACTS: dict[str, Callable[[Agent, ScheduleLine, str, datetime], Done]] = {
    "create": _create,
    "list": _list,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
}


# --- the parts ------------------------------------------------------------------------------


def _of_tenant(agent: Agent, key: int | None) -> Schedule | None:
    return Schedule.objects.filter(tenant=agent.tenant_id, pk=key or 0).first()


def _known(agent: Agent, writ: ScheduleLine) -> Schedule:
    schedule = _of_tenant(agent, writ.id)
    if schedule is None:
        raise Refused(f"there is no schedule #{writ.id} any more")
    return schedule


def _next(schedule: Schedule) -> str:
    """On the wall clock of the schedule, whose zone is the agent's unless the phrase had one."""
    if schedule.next_fire_at is None:
        return "not armed"
    return f"{schedule.next_fire_at.astimezone(zone(schedule.timezone)):%Y-%m-%d %H:%M}"


def _listed(schedule: Schedule) -> str:
    when = f"next {_next(schedule)}" if schedule.state == Schedule.State.ACTIVE else "paused"
    about = f"#{schedule.pk} {schedule.text or schedule.expression}, {when} → {schedule.agent.name}"
    return f"{about}: {_short(schedule.prompt)}" if schedule.prompt else about


def _one_line(text: str) -> str:
    """Nothing in it may look like the end of the block."""
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN].rstrip()} ..."
