"""Schedules of a file become rows that keep their time, their counts and people's pauses."""

import pytest

from agents_app.errors import Refused
from agents_app.models import Schedule, Tenant
from agents_app.schedules import due, edit
from agents_app.schedules.why import explain
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.project_files import Project, the_agent, the_schedule

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
    edit.pause(the_schedule("morning"), "ann", NOON, "holiday")
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


def test_a_manual_schedule_with_the_name_of_the_files_does_not_stop_the_sync(project: Project):
    project.agent()
    project.agent("zebra")
    project.sync()
    fleet = Fleet(Tenant.objects.get())
    fleet.schedule(the_agent(), name="morning")
    project.agent(frontmatter=TWO)
    project.agent("zebra", body="New.")
    project.sync(at(60))
    assert the_agent("zebra").instructions.strip() == "New."


# --- policies -------------------------------------------------------------------------------

ALL_POLICIES = """schedules:
  main:
    expression: every 15 minutes
    timezone: Europe/Berlin
    overlap: queue_one
    catch_up: all
    catch_up_window: 2h
    jitter: 5%
    gap: next_valid
    overlap_hour: both
    anchor: completion
    pause_after_failures: 3
"""


def test_every_policy_can_stand_in_the_file(project: Project):
    project.agent(frontmatter=ALL_POLICIES)
    project.sync()
    main = the_schedule()
    assert (main.text, main.timezone) == ("every 15 minutes", "Europe/Berlin")
    assert (main.overlap, main.catch_up, main.catch_up_window_seconds) == ("queue_one", "all", 7200)
    assert (main.jitter_percent, main.jitter_seconds) == (5, 0)
    assert (main.gap, main.overlap_hour, main.anchor) == ("next_valid", "both", "completion")
    assert (main.pause_after_failures, main.interval_seconds) == (3, 900)


def test_a_changed_policy_reaches_the_row_and_leaves_its_time_and_its_counts_alone(
    project: Project,
):
    project.agent(frontmatter="schedule: every 2 hours")
    project.sync()
    Schedule.objects.update(fire_count=7, skipped_count=2, failure_count=1, missed_count=3)
    project.agent(frontmatter="schedules:\n  default: {expression: every 2 hours, overlap: queue}")
    project.sync(at(hours=1))
    seen = the_schedule()
    assert (seen.overlap, seen.next_fire_at) == ("queue", at(hours=2))
    assert (seen.fire_count, seen.skipped_count) == (7, 2)
    assert (seen.failure_count, seen.missed_count) == (1, 3)


def test_a_changed_time_keeps_the_counts(project: Project):
    project.agent(frontmatter="schedule: every 2 hours")
    project.sync()
    Schedule.objects.update(fire_count=7, last_fire_at=NOON)
    project.agent(frontmatter="schedule: every 3 hours")
    project.sync(at(hours=1))
    seen = the_schedule()
    assert (seen.next_fire_at, seen.fire_count, seen.last_fire_at) == (at(hours=4), 7, NOON)


@pytest.mark.parametrize(
    ("text", "same"), [("@daily", "0 0 * * *"), ("every 2 hours", "every 120 minutes")]
)
def test_another_spelling_of_the_same_time_keeps_the_next_fire(project: Project, text, same):
    project.agent(frontmatter=f"schedule: '{text}'")
    project.sync()
    Schedule.objects.update(next_fire_at=at(minutes=90))
    project.agent(frontmatter=f"schedule: '{same}'")
    project.sync(at(hours=1))
    assert (the_schedule().text, the_schedule().next_fire_at) == (same, at(minutes=90))


def test_a_zone_in_the_text_is_read_the_same_each_time_the_file_changes(project: Project):
    frontmatter = "schedules:\n  main: {expression: every 3 hours UTC, timezone: Asia/Tokyo}"
    project.agent(frontmatter=frontmatter)
    project.sync()
    project.agent(frontmatter=frontmatter, body="Other instructions.")
    project.sync(at(hours=1))
    assert (the_schedule().timezone, the_schedule().next_fire_at) == ("UTC", at(hours=3))


# --- schedules that events start --------------------------------------------------------------

UNSUPPORTED = "unsupported_type: a schedule of type webhook never fires by time"


def test_a_schedule_of_type_webhook_is_kept_and_never_fires(project: Project):
    """Guard: an active schedule without a next fire time would be reported by doctor; with one it
    would fire."""
    project.agent(frontmatter="schedules:\n  issues: {type: webhook, prompt: Look.}")
    assert project.sync().errors == ()
    schedule = the_schedule("issues")
    assert (schedule.state, schedule.pause_note) == ("paused", UNSUPPORTED)
    assert (schedule.next_fire_at, schedule.prompt) == (None, "Look.")
    assert due.claim_due_schedules(at(days=400)) == 0
    assert due.resume_expired_pauses(at(days=400)) == 0
    project.sync(at(60))
    assert the_schedule("issues").state == "paused"
    assert explain(schedule, NOON).obstacles[0].text == f"the schedule is paused: {UNSUPPORTED}"


@pytest.mark.parametrize("at_once", [True, False])
def test_an_attempt_to_fire_it_is_refused_with_the_reason(project: Project, at_once: bool):
    project.agent(frontmatter="schedules:\n  issues: {type: webhook}")
    project.sync()
    with pytest.raises(Refused, match=f"^{UNSUPPORTED}$"):
        edit.resume(the_schedule("issues"), "ann", NOON, at_once=at_once)
    assert the_schedule("issues").state == "paused"


def test_it_fires_when_the_file_gives_it_a_time_and_comes_back_paused(project: Project):
    def write(fields: str) -> Schedule:
        project.agent(frontmatter=f"schedules:\n  main: {fields}")
        project.sync()
        return the_schedule()

    assert write("{type: chat}").state == "paused"
    timed = write("{type: interval, interval: 15m}")
    assert (timed.state, timed.next_fire_at) == ("active", NOON)
    untimed = write("{type: chat}")
    assert (untimed.state, untimed.next_fire_at) == ("paused", None)
    project.agent(frontmatter="scale: 1")
    project.sync()
    assert the_schedule().state == "canceled"
    assert write("{type: chat}").state == "paused"
