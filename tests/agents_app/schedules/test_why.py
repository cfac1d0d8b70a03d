"""The obstacles and the present state of a schedule, as sentences."""

from datetime import datetime
from typing import Any

import pytest

from agents_app.console import Explanation
from agents_app.models import Agent, Schedule, Scheduler, Tenant
from agents_app.runs import control
from agents_app.schedules import edit
from agents_app.schedules.why import explain
from tests.agents_app.fleet import NOON, Fleet, at


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    """With a live beat and a live worker, so that a schedule has no obstacles."""
    Scheduler.objects.create(pk=1, state="running", last_check_at=NOON)
    fleet.worker()
    return fleet


def obstacles(schedule: Schedule, now: datetime = NOON) -> dict[str, str]:
    schedule.refresh_from_db()
    return {obstacle.code: obstacle.text for obstacle in explain(schedule, now).obstacles}


def only_obstacle(schedule: Schedule, now: datetime = NOON) -> tuple[str, str]:
    [found] = obstacles(schedule, now).items()
    return found


def test_an_active_schedule_has_no_obstacles(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), timezone="Europe/Berlin", next_fire_at=at(hours=1))
    seen = explain(schedule, NOON)
    assert seen.obstacles == ()
    assert seen.text == "The schedule is active and fires next at Mon 02 Mar 2026 14:00 CET."
    assert (seen.agent, seen.name, seen.state) == ("reporter", "main", "active")
    assert (seen.next_fire_at, seen.next_fire_local) == (at(hours=1), "Mon 02 Mar 2026 14:00 CET")


def test_the_obstacle_of_a_paused_schedule_has_its_end_and_note(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    edit.pause(schedule, "ann", NOON, "too loud", at(hours=2))
    text = "the schedule is paused until Mon 02 Mar 2026 14:00 UTC: too loud"
    assert only_obstacle(schedule) == ("paused", text)
    assert explain(schedule, NOON).text == "The schedule is paused: it does not fire."


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("completed", "the schedule fires once and has fired"),
        ("failed", "the schedule fires once and failed: exit code 3"),
        ("canceled", "the schedule is canceled"),
    ],
)
def test_the_state_of_an_ended_schedule_is_an_obstacle(fleet: Fleet, state: str, text: str):
    schedule = fleet.schedule(fleet.agent(), state=state, pause_note="exit code 3")
    assert only_obstacle(schedule) == (state, text)


def test_a_one_shot_that_has_fired_ends_with_its_work(fleet: Fleet):
    once = fleet.schedule(fleet.agent(), "at 2026-03-02T12:00:00Z", one_shot=True)
    Schedule.objects.update(next_fire_at=None)
    once.refresh_from_db()
    assert explain(once, NOON).text == "The schedule has fired, and ends with its work."


def test_a_disabled_tenant_and_a_paused_scheduler_are_named(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    Tenant.objects.update(disabled_at=at(hours=-1))
    control.pause_tenant(fleet.tenant, "ann", NOON, "release")
    assert obstacles(schedule) == {
        "tenant_disabled": "the tenant is disabled since Mon 02 Mar 2026 11:00 UTC: enable it",
        "scheduler_paused": "the scheduler is paused since Mon 02 Mar 2026 12:00 UTC: release",
    }


@pytest.mark.parametrize("state", ["draining", "stopped"])
def test_a_stopped_scheduler_is_the_only_obstacle(fleet: Fleet, state: str):
    schedule = fleet.schedule(fleet.agent())
    Scheduler.objects.update(state=state)
    code, text = only_obstacle(schedule)
    assert code == f"scheduler_{state}"
    assert text.startswith(f"the scheduler is {state}: start it")


def test_a_silent_beat_and_a_missing_worker_are_named(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), next_fire_at=at(days=2))
    assert obstacles(schedule, at(days=1)) == {
        "no_beat": "beat has not checked the schedules recently: is Drover running?",
        "no_worker": "no worker is alive: due work waits for a worker",
    }


def test_the_obstacle_of_a_used_up_budget_has_its_end(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, timezone="Europe/Berlin")
    Agent.objects.update(over_budget_until=at(hours=11))
    text = "the agent's budget is used up until Tue 03 Mar 2026 00:00 CET"
    assert only_obstacle(schedule) == ("budget", text)
    Agent.objects.update(over_budget_until=None)
    Tenant.objects.update(over_budget_until=at(hours=11))
    text = "the project's budget is used up until Tue 03 Mar 2026 00:00 CET"
    assert only_obstacle(schedule) == ("project_budget", text)


def test_a_due_schedule_that_no_beat_claimed_is_overdue(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    text = "due since Mon 02 Mar 2026 12:00 UTC, but not fired yet"
    assert only_obstacle(schedule, at(20)) == ("overdue", text)
    assert obstacles(schedule, at(5)) == {}


@pytest.mark.parametrize(
    ("columns", "code", "text"),
    [
        (
            {"removed_at": NOON},
            "agent_missing",
            "the agent's directory is missing since Mon 02 Mar 2026 12:00 UTC: put it back",
        ),
        ({"scale": 0}, "agent_disabled", "the agent's scale is 0: give it a scale above 0"),
        (
            {"definition_error": "line 3: bad\nline 4: worse"},
            "agent_invalid",
            "the agent's file has errors, the last valid version is used: line 3: bad",
        ),
        (
            {"paused_at": NOON, "pause_note": "costly"},
            "agent_paused",
            "the agent is paused since Mon 02 Mar 2026 12:00 UTC: costly",
        ),
    ],
)
def test_each_problem_of_the_agent_is_an_obstacle(
    fleet: Fleet, columns: dict[str, Any], code: str, text: str
):
    schedule = fleet.schedule(fleet.agent())
    Agent.objects.update(**columns)
    assert only_obstacle(schedule) == (code, text)


def test_busy_slots_are_named_with_the_runs_that_hold_them(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    run_id = fleet.start(fleet.enqueue(agent, requested_by="ann"), at(minutes=-5)).run_id
    since = f"run {run_id} (running since Mon 02 Mar 2026 11:55 UTC, ann)"
    assert only_obstacle(schedule) == (
        "at_capacity",
        "the only slot of reporter is busy, a firing would be skipped (overlap: skip): " + since,
    )
    Schedule.objects.update(overlap="queue")
    assert "a firing would wait (overlap: queue)" in obstacles(schedule)["at_capacity"]


def test_a_full_project_is_an_obstacle_even_if_the_agent_has_free_slots(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=2))
    fleet.enqueue(fleet.agent("other"))
    Tenant.objects.update(scale=1)
    code, text = only_obstacle(schedule)
    assert code == "project_at_capacity"
    assert text.startswith("all 1 slots of the project are in use")


def test_unfinished_work_of_the_schedule_is_an_obstacle_with_overlap_skip(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=2))
    fleet.fire(schedule)
    assert only_obstacle(schedule)[0] == "already_running"
    Schedule.objects.update(overlap="queue")
    assert obstacles(schedule) == {}


def test_the_counters_are_read_from_the_schedule(fleet: Fleet):
    counts = {"fire_count": 5, "skipped_count": 4, "missed_count": 3, "late_count": 2}
    seen: Explanation = explain(fleet.schedule(fleet.agent(), **counts, failure_count=1), NOON)
    c = seen.counters
    assert (c.fired, c.skipped, c.missed, c.late, c.failures) == (5, 4, 3, 2, 1)


def test_an_active_schedule_with_an_obstacle_is_not_shown_as_well(fleet: Fleet):
    """Guard: "fires next at" beside "the agent is paused" contradicts itself."""
    schedule = fleet.schedule(fleet.agent(), next_fire_at=at(hours=1))
    Agent.objects.update(paused_at=NOON)
    assert explain(schedule, NOON).text == (
        "The schedule is active and due next at Mon 02 Mar 2026 13:00 UTC, "
        "but would start no run now."
    )


def test_the_error_of_an_agent_without_a_valid_file_is_the_obstacle(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    errors = "SKILL.md: no command: set it\nSKILL.md:2: x"
    Agent.objects.update(revision=0, scale=0, definition_error=errors)
    text = "the agent's file has errors, and no version of it is in use: "
    assert only_obstacle(schedule) == ("agent_never_valid", text + "SKILL.md: no command: set it")


def test_a_disabled_agent_whose_file_got_errors_keeps_its_version(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    Agent.objects.update(scale=0, definition_error="SKILL.md:2: x")
    assert obstacles(schedule).keys() == {"agent_disabled", "agent_invalid"}


def test_an_agent_that_was_never_valid_starts_nothing_with_a_scale_either(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), next_fire_at=at(hours=1))
    Agent.objects.update(revision=0, definition_error="SKILL.md: no command: set it")
    assert only_obstacle(schedule)[0] == "agent_never_valid"
    assert "would start no run now" in explain(schedule, NOON).text
