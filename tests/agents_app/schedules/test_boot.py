"""`@reboot`: due once after each boot of the host, when Drover starts."""

from datetime import datetime
from pathlib import Path

import pytest

from agents_app.accounts.tenants import disable_tenant
from agents_app.maintenance.fleet_checks import check_schedules
from agents_app.maintenance.invariants import active_schedule_without_a_next_fire_time
from agents_app.models import Firing, Schedule
from agents_app.schedules import due, edit
from agents_app.triggers.preview import preview_fires
from scheduler_project import beat
from scheduler_project.celery import app
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.project_files import Project

BOOT = at(hours=-1)
NEXT_BOOT = at(hours=1)


@pytest.fixture
def schedule(fleet: Fleet) -> Schedule:
    made = fleet.schedule(fleet.agent(), "@reboot", next_fire_at=None, overlap="queue")
    Schedule.objects.update(created_at=at(days=-1))
    return made


def start(booted_at: datetime, now: datetime) -> list[str]:
    """Start Drover; returns the outcomes of the firings at this moment."""
    due.arm_boot_schedules(booted_at, now)
    due.fire_due_schedules(now, lambda: now)
    return list(Firing.objects.filter(recorded_at=now).values_list("outcome", flat=True))


def test_the_first_start_after_a_boot_fires_and_later_starts_do_not(schedule: Schedule):
    assert start(BOOT, NOON) == ["started"]
    assert start(BOOT, at(60)) == []
    schedule.refresh_from_db()
    assert (schedule.state, schedule.next_fire_at) == ("active", None)
    assert (schedule.last_fire_at, schedule.fire_count, schedule.missed_count) == (NOON, 1, 0)
    assert start(NEXT_BOOT, at(hours=2)) == ["queued"]


def test_a_schedule_that_was_created_after_the_boot_waits_for_the_next(schedule: Schedule):
    Schedule.objects.update(created_at=at(minutes=-1))
    assert start(BOOT, NOON) == []
    assert start(NEXT_BOOT, at(hours=2)) == ["started"]


def test_a_skipped_firing_is_not_repeated_after_the_same_boot(fleet: Fleet, schedule: Schedule):
    disable_tenant(fleet.tenant, "ann", NOON)
    assert start(BOOT, NOON) == ["skipped"]
    assert start(BOOT, at(60)) == []


def test_a_paused_schedule_is_not_armed_and_a_resumed_one_is(schedule: Schedule):
    edit.pause(schedule, "ann", NOON)
    assert start(BOOT, NOON) == []
    edit.resume(schedule, "ann", at(1))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.next_fire_at) == ("active", None)
    assert start(BOOT, at(2)) == ["started"]


def test_beat_arms_the_schedules_when_it_starts(schedule: Schedule, monkeypatch):
    monkeypatch.setattr(beat, "booted_at", lambda: BOOT)
    monkeypatch.setattr(beat, "_watch", lambda: None)
    # The parent writes rows of duties in a transaction of its own.
    monkeypatch.setattr(beat.DatabaseScheduler, "setup_schedule", lambda _: None)
    starting = beat.DroverScheduler(app, lazy=True)
    starting.clock = lambda: NOON
    monkeypatch.setattr(beat.DroverScheduler, "schedule", {})
    monkeypatch.setattr(starting.duties, "submit", lambda _: None)
    starting.setup_schedule()
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOON


def test_the_text_is_accepted_where_schedules_are_written(fleet: Fleet, tmp_path: Path):
    created = edit.create(fleet.agent(), edit.Draft(text="@Reboot", name="own"), "ann", NOON)
    assert (created.expression, created.one_shot, created.next_fire_at) == ("@reboot", False, None)
    project = Project(tmp_path / "project")
    project.agent("booted", 'schedule: "@reboot"')
    assert project.sync().errors == ()
    assert Schedule.objects.get(agent__name="booted").expression == "@reboot"


def test_the_preview_says_when_it_fires():
    shown = preview_fires("@reboot", "UTC", NOON)
    assert (shown.fires, shown.error) == ((), "")
    assert shown.said == "once after each boot of the host, when Drover starts"


def test_an_active_schedule_without_a_time_is_no_problem(schedule: Schedule):
    assert list(active_schedule_without_a_next_fire_time(NOON)) == []
    assert [result[0] for result in check_schedules(NOON)] == ["ok"]
