"""Dates in an agent's file, and schedules whose agent goes away and comes back."""

import shutil
from datetime import datetime

import pytest

from agents_app.models import Schedule, Tenant
from tests.agents_app.fleet import Fleet, at
from tests.agents_app.project_files import Project, the_agent, the_schedule
from tests.agents_app.timely import outcomes, run, tick

pytestmark = pytest.mark.django_db

# --- one-shots in files ---------------------------------------------------------------------

ONCE = "schedule: on 2026-03-02 at 13:00 UTC"
DUE = at(hours=1)


def _done(project: Project, frontmatter: str = ONCE) -> Schedule:
    """The schedule has fired and its run succeeded."""
    project.agent(frontmatter=frontmatter)
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    run(fleet, the_schedule(), "succeeded", DUE)
    assert the_schedule().state == "completed"
    return the_schedule()


def test_a_date_in_a_file_is_a_one_shot_that_waits_for_a_slot(project: Project):
    project.agent(frontmatter=ONCE)
    project.sync()
    seen = the_schedule()
    assert (seen.one_shot, seen.next_fire_at, seen.overlap) == (True, DUE, "queue")
    assert seen.expression == "at 2026-03-02T13:00:00Z"


def test_a_one_shot_of_a_file_may_have_another_overlap_policy(project: Project):
    expression = "on 2026-03-02 at 13:00 UTC"
    project.agent(frontmatter=f"schedules:\n  x: {{expression: {expression}, overlap: skip}}")
    project.sync()
    assert the_schedule().overlap == "skip"


def test_a_date_that_was_past_when_the_file_came_is_missed_and_says_so(project: Project):
    project.agent(frontmatter=ONCE)
    project.sync(at(days=1))
    tick(at(days=1))
    assert (the_schedule().state, the_schedule().pause_note) == ("failed", "skipped: missed")


@pytest.mark.parametrize("text", ["in 30 minutes", "tomorrow at 09:00", "at 9am", "next monday"])
def test_a_time_that_depends_on_when_the_file_is_read_is_refused(project: Project, text):
    project.agent(frontmatter=f"schedule: {text}")
    project.sync()
    error = the_agent().definition_error
    assert f'"{text}" cannot be used in a file: it means a different time each time' in error
    assert "on 2030-06-01 at 12:00" in error
    assert not Schedule.objects.exists()


def test_an_interval_that_never_comes_round_is_refused(project: Project):
    project.agent(frontmatter="schedule: 9000000d")
    project.sync()
    assert "can never fire" in the_agent().definition_error
    assert not Schedule.objects.exists()


def test_a_completed_one_shot_whose_date_is_edited_is_active_again(project: Project):
    done = _done(project)
    project.agent(frontmatter=ONCE.replace("13:00", "15:00"))
    project.sync(at(hours=2))
    seen = the_schedule()
    assert (seen.pk, seen.state, seen.next_fire_at) == (done.pk, "active", at(hours=3))
    assert seen.fire_count == 1
    run(Fleet(Tenant.objects.get()), seen, "succeeded", at(hours=3))
    assert (the_schedule().state, the_schedule().fire_count) == ("completed", 2)


@pytest.mark.parametrize(
    "frontmatter",
    [
        ONCE,
        "schedule: on 2026-03-02 at 14:00 Europe/Berlin",
        f"{ONCE}\nscale: 2",
        "schedules:\n  default: {expression: on 2026-03-02 at 13:00 UTC, prompt: other}",
    ],
)
def test_a_completed_one_shot_stays_so_when_anything_else_changes(project: Project, frontmatter):
    _done(project)
    project.agent(frontmatter=frontmatter, body="Other instructions.")
    project.sync(at(hours=2))
    tick(at(hours=2))
    seen = the_schedule()
    assert (seen.state, seen.next_fire_at, seen.firings.count()) == ("completed", None, 1)


def test_a_failed_one_shot_stays_so_when_its_date_is_only_written_otherwise(project: Project):
    project.agent(frontmatter=ONCE)
    project.sync()
    run(Fleet(Tenant.objects.get()), the_schedule(), "failed", DUE, "exit code 3")
    project.agent(frontmatter="schedule: on 2026-03-02 at 14:00 Europe/Berlin")
    project.sync(at(hours=2))
    tick(at(hours=2))
    assert (the_schedule().state, the_schedule().pause_note) == ("failed", "exit code 3")


@pytest.mark.parametrize("between", ["", ONCE.replace("13:00", "13:30")])
def test_a_date_that_comes_back_to_the_file_does_not_fire_again(project: Project, between):
    _done(project)
    project.agent(frontmatter=between)
    project.sync(at(hours=1, minutes=10))
    project.agent(frontmatter=ONCE)
    project.sync(at(hours=1, minutes=20))
    tick(at(hours=1, minutes=20))
    seen = the_schedule()
    assert (seen.state, seen.next_fire_at, seen.firings.count()) == ("completed", None, 1)


# --- agents that come and go ----------------------------------------------------------------


def _gone(project: Project, now: datetime) -> None:
    shutil.rmtree(project.root / "agents" / "reporter")
    project.sync(now)
    assert the_schedule().pause_note == "the agent's directory is missing"


def test_a_one_shot_whose_agent_was_away_at_its_time_fires_when_it_is_back(project: Project):
    project.agent(frontmatter=ONCE)
    project.sync()
    _gone(project, at(60))
    tick(DUE)
    project.agent(frontmatter=ONCE)
    project.sync(at(hours=5))
    tick(at(hours=5))
    assert outcomes(the_schedule()) == [(at(hours=5), "started", "")]


def test_a_schedule_that_is_not_in_the_file_when_its_agent_is_back_is_canceled(project: Project):
    project.agent(frontmatter="schedule: 15m")
    project.sync()
    _gone(project, at(60))
    project.agent()
    project.sync(at(120))
    assert the_schedule().state == "canceled"


def test_a_schedule_that_is_disabled_when_its_agent_returns_stays_disabled(project: Project):
    on = "schedules:\n  main: {interval: 15m, enabled: true}"
    project.agent(frontmatter=on)
    project.sync()
    _gone(project, at(60))
    project.agent(frontmatter=on.replace("true", "false"))
    project.sync(at(120))
    assert the_schedule().state == "paused"
    project.agent(frontmatter=on)
    project.sync(at(180))
    assert the_schedule().state == "active"
