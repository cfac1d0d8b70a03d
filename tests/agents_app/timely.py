"""What tests of schedules do all the time: make one as people do, and let time pass."""

from datetime import datetime
from typing import Any

from agents_app.models import Agent, Run, RunEvent, Schedule, WorkItem
from agents_app.runs.job import Job
from agents_app.schedules import due, edit, firings
from agents_app.schedules.edit import Draft
from tests.agents_app.fleet import NOON, Fleet


def create(agent: Agent, text: str, now: datetime = NOON, **draft: Any) -> Schedule:
    return edit.create(agent, Draft(text=text, **{"timezone": "UTC", **draft}), "ann", now)


def tick(now: datetime) -> None:
    """What beat does."""
    due.resume_expired_pauses(now)
    due.claim_due_schedules(now)
    firings.decide_firings(now)


def look(schedule: Schedule) -> Schedule:
    """As it is by now."""
    return Schedule.objects.get(pk=schedule.pk)


def states(schedule: Schedule) -> tuple[str, str]:
    """The state, and the words that go with it."""
    seen = look(schedule)
    return seen.state, seen.pause_note


def outcomes(schedule: Schedule) -> list[tuple[datetime, str, str]]:
    firings = schedule.firings.order_by("due_at")
    return list(firings.values_list("due_at", "outcome", "reason"))


def last_work(schedule: Schedule) -> WorkItem:
    return WorkItem.objects.filter(schedule=schedule).latest("id")


def start(fleet: Fleet, schedule: Schedule, now: datetime = NOON) -> Job:
    """A worker starts what the schedule asked for last."""
    return fleet.start(last_work(schedule), now)


def run(fleet: Fleet, schedule: Schedule, state: str, now: datetime, error: str = "") -> None:
    """The schedule is due, and its run ends so in the same moment."""
    tick(now)
    fleet.finish(start(fleet, schedule, now), state, now, error=error)


def runs_of(schedule: Schedule) -> list[str]:
    runs = Run.objects.filter(schedule=schedule).order_by("id")
    return list(runs.values_list("state", flat=True))


def told(name: str) -> list[str]:
    """What the journal says about such acts."""
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))
