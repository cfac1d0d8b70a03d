"""Common steps of tests of schedules: create a schedule, tick, start and finish its runs."""

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
    """Perform one tick of beat."""
    due.resume_expired_pauses(now)
    due.claim_due_schedules(now)
    firings.decide_firings(now)


def reread(schedule: Schedule) -> Schedule:
    """The schedule as it is in the database now."""
    return Schedule.objects.get(pk=schedule.pk)


def states(schedule: Schedule) -> tuple[str, str]:
    """The state and the note of the schedule."""
    seen = reread(schedule)
    return seen.state, seen.pause_note


def outcomes(schedule: Schedule) -> list[tuple[datetime, str, str]]:
    firings = schedule.firings.order_by("due_at")
    return list(firings.values_list("due_at", "outcome", "reason"))


def last_work(schedule: Schedule) -> WorkItem:
    return WorkItem.objects.filter(schedule=schedule).latest("id")


def start(fleet: Fleet, schedule: Schedule, now: datetime = NOON) -> Job:
    """Start the last work item of the schedule."""
    return fleet.start(last_work(schedule), now)


def run(fleet: Fleet, schedule: Schedule, state: str, now: datetime, error: str = "") -> None:
    """Tick, and end the run of the schedule in this state at the same moment."""
    tick(now)
    fleet.finish(start(fleet, schedule, now), state, now, error=error)


def runs_of(schedule: Schedule) -> list[str]:
    runs = Run.objects.filter(schedule=schedule).order_by("id")
    return list(runs.values_list("state", flat=True))


def event_details(name: str) -> list[str]:
    """The details of all events with this name."""
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))
