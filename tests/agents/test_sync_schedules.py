"""Schedules of a file become rows that keep their time, their counts and people's pauses."""

import pytest

from agents_app import control, due
from agents_app.models import Schedule, Tenant
from tests.agents.fleet import NOON, Fleet, at
from tests.agents.project import Project, the_agent, the_schedule

pytestmark = pytest.mark.django_db


# --- schedules ------------------------------------------------------------------------------

TWO = """schedules:
  morning: {cron: 0 9 * * *, timezone: UTC, prompt: rise}
  often: {interval: 15m}
"""


def test_schedules_of_the_file_are_armed(project: Project):
    project.agent(frontmatter=TWO)
    project.sync()
    morning, often = the_schedule("morning"), the_schedule("often")
    assert (morning.next_fire_at, morning.prompt) == (at(hours=21), "rise")
    assert (morning.source, morning.interval_seconds) == ("file", None)
    assert (often.next_fire_at, often.interval_seconds) == (NOON, 900)


def test_the_first_run_of_an_interval_fires_at_once(project: Project):
    project.agent(frontmatter="schedule: 15m")
    project.sync()
    assert due.claim_due_schedules(NOON) == 1


def test_a_schedule_that_has_not_changed_keeps_its_time_when_the_file_does(project: Project):
    project.agent(frontmatter=TWO)
    project.sync()
    Schedule.objects.filter(name="morning").update(next_fire_at=at(60), fire_count=7)
    project.agent(frontmatter=TWO, body="Other instructions.")
    project.sync(at(30))
    morning = the_schedule("morning")
    assert (morning.next_fire_at, morning.fire_count) == (at(60), 7)


def test_a_changed_expression_arms_the_same_schedule_anew(project: Project):
    project.agent(frontmatter="schedules:\n  main: {cron: 0 9 * * *, timezone: UTC}")
    project.sync()
    first = the_schedule()
    project.agent(frontmatter="schedules:\n  main: {cron: 0 15 * * *, timezone: UTC}")
    project.sync(at(60))
    schedule = the_schedule()
    assert (schedule.pk, schedule.next_fire_at) == (first.pk, at(hours=3))


def test_a_changed_interval_counts_from_the_last_completion(project: Project):
    project.agent(frontmatter="schedule: 1h")
    project.sync()
    Schedule.objects.update(last_completed_at=at(minutes=10))
    project.agent(frontmatter="schedule: 15m")
    project.sync(at(minutes=12))
    assert the_schedule().next_fire_at == at(minutes=25)


def test_a_schedule_that_left_the_file_is_canceled_and_comes_back_when_it_does(project: Project):
    project.agent(frontmatter=TWO)
    project.sync()
    project.agent(frontmatter="schedules:\n  often: {interval: 15m}")
    project.sync(at(60))
    morning = the_schedule("morning")
    assert (morning.state, morning.next_fire_at) == ("canceled", None)
    project.agent(frontmatter=TWO)
    project.sync(at(120))
    again = the_schedule("morning")
    assert (again.pk, again.state, again.next_fire_at) == (morning.pk, "active", at(hours=21))


def test_a_schedule_disabled_in_the_file_is_paused_until_it_is_enabled_there(project: Project):
    off = "schedules:\n  main: {interval: 15m, enabled: false}"
    project.agent(frontmatter=off)
    project.sync()
    assert the_schedule().state == "paused"
    assert due.claim_due_schedules(at(hours=1)) == 0
    project.agent(frontmatter=off.replace("false", "true"))
    project.sync(at(hours=2))
    assert (the_schedule().state, the_schedule().pause_note) == ("active", "")


def test_a_persons_pause_survives_a_change_of_the_file(project: Project):
    project.agent(frontmatter=TWO)
    project.sync()
    control.pause_schedule(the_schedule("morning"), "ann", NOON, "holiday")
    project.agent(frontmatter=TWO.replace("0 9", "0 10"))
    project.sync(at(60))
    morning = the_schedule("morning")
    assert (morning.state, morning.pause_note) == ("paused", "holiday")


def test_a_schedule_that_a_person_made_is_not_the_files_to_cancel(project: Project):
    project.agent(frontmatter=TWO)
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    fleet.schedule(the_agent(), name="mine")
    project.agent()
    project.sync(at(60))
    assert the_schedule("mine").state == "active"
    assert the_schedule("often").state == "canceled"


def test_a_name_that_a_person_has_taken_does_not_stop_the_sync(project: Project):
    project.agent()
    project.agent("zebra")
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    fleet.schedule(the_agent(), name="morning")
    project.agent(frontmatter=TWO)
    project.agent("zebra", body="New.")
    project.sync(at(60))
    assert the_agent("zebra").instructions.strip() == "New."
