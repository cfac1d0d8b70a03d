"""The present state of a schedule and its history, in sentences."""

from collections.abc import Iterable
from datetime import datetime

from agents_app.console import ENDED_BY_A_RUN, Counters, Explanation, Obstacle
from agents_app.models import Schedule
from agents_app.schedules import read_history, read_retried_work
from agents_app.schedules.why.obstacles import find_obstacles
from agents_app.triggers.preview import clock

SHOWN = 10
# The codes of obstacles with which a schedule still fires and starts runs when it is due.
HARMLESS = ENDED_BY_A_RUN | {"agent_invalid", "overdue"}


def explain(schedule: Schedule, now: datetime, limit: int = SHOWN) -> Explanation:
    """The present state, and the latest firings with the state of their work."""
    obstacles = find_obstacles(schedule, now)
    local = clock(schedule.next_fire_at, schedule.timezone)
    return Explanation(
        id=schedule.pk,
        agent=schedule.agent.name,
        name=schedule.name,
        state=str(schedule.state),
        shown_state=schedule.shown_state,
        timezone=schedule.timezone,
        text=_state_text(schedule, local, obstacles),
        obstacles=obstacles,
        next_fire_at=schedule.next_fire_at,
        next_fire_local=local,
        counters=_counters(schedule),
        firings=read_history(schedule, limit),
        retried_work=read_retried_work(schedule, limit),
    )


def _state_text(schedule: Schedule, local: str, obstacles: Iterable[Obstacle]) -> str:
    if schedule.shown_state == "disabled":
        return "The schedule is disabled with its agent: it starts no run."
    if schedule.state != Schedule.State.ACTIVE:
        return f"The schedule is {schedule.state}: it does not fire."
    if not local:
        once = "The schedule has fired, and ends with its work."
        return once if schedule.one_shot else "The schedule is active, but will never fire again."
    if any(obstacle.code not in HARMLESS for obstacle in obstacles):
        return f"The schedule is active and due next at {local}, but would start no run now."
    return f"The schedule is active and fires next at {local}."


def _counters(schedule: Schedule) -> Counters:
    return Counters(
        fired=schedule.fire_count,
        skipped=schedule.skipped_count,
        missed=schedule.missed_count,
        late=schedule.late_count,
        failures=schedule.failure_count,
    )
