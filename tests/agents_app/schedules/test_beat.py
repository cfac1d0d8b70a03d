"""The tick of beat: due schedules are claimed, firings decided, duties performed by one beat."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from agents_app.conf import CONF
from agents_app.maintenance import DutyRunner, duties
from agents_app.maintenance.beat_status import BeatStatus
from agents_app.models import RunEvent, Scheduler, WorkItem
from scheduler_project.beat import DroverScheduler, claim_duty
from scheduler_project.celery import app
from tests.agents_app.fleet import NOON, Fleet, at, run_states
from tests.parts.waiting import wait_for


@pytest.fixture
def duty(db: None) -> PeriodicTask:
    every = IntervalSchedule.objects.create(every=10, period="seconds")
    return PeriodicTask.objects.create(name="a duty", task="x", interval=every)


@pytest.fixture
def scheduler(fleet: Fleet) -> DroverScheduler:
    lazy = DroverScheduler(app, lazy=True)
    lazy.duties_at = float("inf")
    lazy.clock = lambda: at(0.5)
    return lazy


def test_a_tick_claims_decides_and_sleeps_until_the_next_fire(
    fleet: Fleet, scheduler: DroverScheduler
):
    agent = fleet.agent()
    fleet.schedule(agent, "1s", interval_seconds=1)
    Scheduler.objects.create(pk=1)
    assert scheduler.tick() == pytest.approx(1.0)
    assert run_states(agent) == ["pending"]
    row = Scheduler.objects.get()
    assert (row.check_count, row.trigger_count, row.last_check_at) == (1, 1, at(0.5))


def test_a_beat_never_sleeps_past_a_fire_nor_longer_than_a_second(
    fleet: Fleet, scheduler: DroverScheduler
):
    assert scheduler.tick() == 1.0
    fleet.schedule(fleet.agent(), next_fire_at=at(0.7))
    assert scheduler.tick() == pytest.approx(0.2)


@pytest.mark.parametrize("state", ["draining", "stopped"])
def test_a_beat_asks_the_up_of_its_host_to_drain(
    fleet: Fleet, scheduler: DroverScheduler, monkeypatch: pytest.MonkeyPatch, state: str
):
    """Guard: a drain that another host began is in the row alone."""
    asked: list[Path] = []

    def drain_up(data: Path) -> bool:
        asked.append(data)
        return True

    monkeypatch.setattr("agents_app.runs.shutdown.drain_up", drain_up)
    Scheduler.objects.create(pk=1)
    scheduler.tick()
    assert asked == []
    Scheduler.objects.update(state=state)
    scheduler.follow_drain_at = 0.0
    scheduler.tick()
    assert asked == [CONF.data]
    assert Scheduler.objects.get().state == state


def test_without_up_beat_ends_a_drain_after_the_last_run(fleet: Fleet, scheduler: DroverScheduler):
    Scheduler.objects.create(pk=1, state="draining")
    worker = fleet.worker(lease_until=datetime.now(UTC) + timedelta(minutes=1))
    job = fleet.start(_admitted(fleet), worker=worker)
    states = []
    for ended in (False, True):
        if ended:
            fleet.finish(job)
        scheduler.follow_drain_at = 0.0
        scheduler.tick()
        states.append(Scheduler.objects.get().state)
    assert states == ["draining", "stopped"]
    assert RunEvent.objects.filter(name="scheduler.stopped").count() == 1


def _admitted(fleet: Fleet) -> WorkItem:
    """Work that was admitted before the drain began."""
    Scheduler.objects.update(state="running")
    item = fleet.enqueue(fleet.agent())
    Scheduler.objects.update(state="draining")
    return item


def test_the_duties_are_periodic_tasks_with_the_documented_periods(scheduler: DroverScheduler):
    for name, entry in app.conf.beat_schedule.items():
        scheduler.Entry.from_entry(name, app=app, **entry)
    found = PeriodicTask.objects.select_related("interval")
    seconds = {task.task.rpartition(".")[2]: task.interval.every for task in found}
    assert {task.interval.period for task in found} == {"seconds"}
    assert (seconds["take_snapshot"], seconds["obey_rules"]) == (60, 10)
    assert seconds["reconcile"] == CONF.reconcile_seconds


def test_of_several_beats_one_performs_a_duty(duty: PeriodicTask):
    assert [claim_duty("a duty", 10, at(second)) for second in (0, 0.1, 3)] == [True, False, False]
    assert claim_duty("a duty", 10, at(10))


def test_a_beat_that_ticks_slightly_early_still_performs_its_duty(duty: PeriodicTask):
    assert claim_duty("a duty", 10, NOON)
    assert claim_duty("a duty", 10, at(9.8))


def test_a_clock_that_is_set_back_delays_no_duty(
    duty: PeriodicTask, scheduler: DroverScheduler, monkeypatch: pytest.MonkeyPatch
):
    now = datetime.now(UTC)
    PeriodicTask.objects.update(last_run_at=now + timedelta(hours=3))
    assert claim_duty("a duty", 10, now)
    PeriodicTask.objects.update(last_run_at=now + timedelta(hours=3))
    late, early = now + timedelta(hours=3), now - timedelta(seconds=20)
    # Celery's way to read the schedule would close the connection of this test.
    schedule = scheduler.all_as_schedule()
    monkeypatch.setattr(DroverScheduler, "schedule", schedule)
    scheduler.clock = lambda: late
    scheduler.tick()
    assert not schedule["a duty"].is_due().is_due
    scheduler.clock = lambda: early
    scheduler.tick()
    assert schedule["a duty"].is_due().is_due


def test_a_duty_does_not_overlap_with_itself(monkeypatch):
    going, begun = threading.Event(), []

    def slow(_) -> None:
        begun.append(1)
        going.wait(5)

    monkeypatch.setattr(duties, "DUTIES", {"slow": slow})
    runner = DutyRunner()
    for _ in range(3):
        runner.submit("slow")
    wait_for(lambda: begun)
    going.set()
    wait_for(lambda: runner.running["slow"].done())
    runner.submit("slow")
    wait_for(lambda: len(begun) == 2)


def test_a_duty_that_fails_is_logged_and_performed_again_after_its_period(monkeypatch, caplog):
    monkeypatch.setattr(duties, "DUTIES", {"bad": lambda _: 1 / 0})
    runner = DutyRunner()
    for _ in range(2):
        runner.submit("bad")
        wait_for(lambda: runner.running["bad"].done())
    failed = [record for record in caplog.records if record.msg["event"] == "duty.failed"]
    assert len(failed) == 2


def test_the_status_of_beat_is_written_every_ten_seconds_and_loses_no_count(fleet: Fleet):
    Scheduler.objects.create(pk=1)
    status = BeatStatus()
    for second in range(5):
        status.record_check(at(second), 2)
    row = Scheduler.objects.get()
    assert (row.check_count, row.trigger_count) == (1, 2)
    status.write_at = 0.0
    status.record_check(NOON + timedelta(seconds=5), 0)
    row.refresh_from_db()
    assert (row.check_count, row.trigger_count) == (6, 10)


def test_an_unreachable_database_delays_a_tick_and_does_not_end_beat(
    scheduler: DroverScheduler, caplog
):
    from django.db import OperationalError

    def away(*_):
        raise OperationalError("gone")

    # The connection of a test must stay: closing it would undo everything.
    scheduler_connection = connection.close
    connection.close = lambda: None  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(away):
            assert scheduler.tick() == 1.0
    finally:
        connection.close = scheduler_connection  # type: ignore[method-assign]
    assert [r.msg["event"] for r in caplog.records] == ["beat.database_unreachable"]
