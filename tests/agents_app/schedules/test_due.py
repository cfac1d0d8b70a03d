"""Due instants become firings: one per instant, caught up by policy, with a next fire time."""

import tracemalloc
from datetime import datetime, timedelta

import pytest
from django.db import connection

from agents_app.models import Firing, Run, Schedule
from agents_app.schedules import due, plan
from agents_app.triggers.fires import _next_cron_fire
from tests.agents_app.fleet import NOON, Fleet, at

EVERY_MINUTE = "* * * * *"
EVERY_HOUR = "0 * * * *"


def outcomes(schedule: Schedule) -> list[tuple[datetime, str, str]]:
    firings = schedule.firings.order_by("due_at")
    return list(firings.values_list("due_at", "outcome", "reason"))


def fired(schedule: Schedule) -> list[datetime]:
    firings = schedule.firings.filter(outcome="").order_by("due_at")
    return list(firings.values_list("due_at", flat=True))


# --- one instant, one firing ----------------------------------------------------------------


def test_a_due_instant_becomes_a_firing_and_the_next_fire_time_is_set(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE, next_fire_at=NOON)
    assert due.claim_due_schedules(at(0.2)) == 1
    schedule.refresh_from_db()
    assert outcomes(schedule) == [(NOON, "", "")]
    assert schedule.next_fire_at == at(60)
    assert (schedule.last_fire_at, schedule.fire_count, schedule.missed_count) == (NOON, 1, 0)


def test_a_second_claim_at_the_same_time_finds_nothing_due(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE)
    due.claim_due_schedules(NOON)
    assert due.claim_due_schedules(NOON) == 0
    assert schedule.firings.count() == 1


def test_an_instant_that_was_recorded_already_is_not_recorded_again(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE)
    fleet.firing(schedule, NOON)
    due.claim_due_schedules(NOON)
    schedule.refresh_from_db()
    assert schedule.firings.count() == 1
    assert schedule.next_fire_at == at(60)


def test_nothing_is_due_before_its_time(fleet: Fleet):
    fleet.schedule(fleet.agent(), EVERY_MINUTE)
    assert due.claim_due_schedules(NOON - timedelta(microseconds=1)) == 0


def test_a_tick_holds_no_schedule_that_is_not_due(fleet: Fleet):
    """Its memory does not grow with the number of schedules."""
    agent = fleet.agent()
    Schedule.objects.bulk_create(
        (
            Schedule(
                tenant=fleet.tenant,
                agent=agent,
                name=f"number {number}",
                expression=EVERY_MINUTE,
                next_fire_at=at(days=1),
            )
            for number in range(2000)
        ),
        batch_size=500,
    )
    due.claim_due_schedules(NOON)  # what the first call loads is not counted
    tracemalloc.start()
    try:
        assert due.claim_due_schedules(at(1)) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("state", [s for s in Schedule.State.values if s != "active"])
def test_only_active_schedules_fire(fleet: Fleet, state):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE, state=state)
    assert due.claim_due_schedules(at(hours=1)) == 0
    assert not schedule.firings.exists()


def test_when_the_clock_goes_back_nothing_fires_again(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE)
    due.claim_due_schedules(NOON)
    for minute in range(60):
        assert due.claim_due_schedules(at(hours=-1, minutes=minute)) == 0
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(60)
    due.claim_due_schedules(at(60))
    assert fired(schedule) == [NOON, at(60)]


def test_more_schedules_than_fit_into_one_commit_are_all_claimed(fleet: Fleet):
    agent = fleet.agent()
    many = due.SCHEDULES_IN_ONE_COMMIT + 1
    Schedule.objects.bulk_create(
        Schedule(
            tenant=fleet.tenant,
            agent=agent,
            name=f"number {number}",
            expression=EVERY_MINUTE,
            next_fire_at=NOON,
        )
        for number in range(many)
    )
    assert due.claim_due_schedules(NOON) == many
    assert Firing.objects.count() == many
    assert set(Schedule.objects.values_list("next_fire_at", flat=True)) == {at(60)}


def test_the_next_due_time_is_the_earliest_of_all_active_schedules(fleet: Fleet):
    agent = fleet.agent()
    assert due.next_due_at() is None
    fleet.schedule(agent, name="late", next_fire_at=at(300))
    fleet.schedule(agent, name="soon", next_fire_at=at(120))
    fleet.schedule(agent, name="paused", next_fire_at=at(60), state="paused")
    fleet.schedule(agent, name="never", next_fire_at=None)
    assert due.next_due_at() == at(120)


def test_due_times_and_runs_are_found_by_indexes(fleet: Fleet):
    with connection.cursor() as cursor:
        is_postgres = connection.vendor == "postgresql"
        if is_postgres:
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"{'EXPLAIN' if is_postgres else 'EXPLAIN QUERY PLAN'} {due._NEXT}")
        plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
        of_schedule = Run.objects.filter(schedule=1).order_by("-id").explain()
        of_tenant = Run.objects.filter(tenant=1).order_by("-id").explain()
    for name in ("schedule_due", "schedule_paused_until", "firing_undecided"):
        assert name in plan
    assert "run_of_schedule" in of_schedule
    assert "run_of_tenant" in of_tenant


def test_an_unreadable_schedule_does_not_delay_other_schedules(fleet: Fleet):
    agent = fleet.agent()
    broken = fleet.schedule(agent, "every now and then", name="broken")
    lost = fleet.schedule(agent, EVERY_MINUTE, name="nowhere", timezone="Atlantis/Capital")
    fine = fleet.schedule(agent, EVERY_MINUTE, name="fine")
    due.claim_due_schedules(NOON)
    assert fired(fine) == [NOON]
    for schedule in (broken, lost):
        schedule.refresh_from_db()
        assert schedule.state == "paused"
        assert schedule.pause_note


# --- catching up ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("skip", []), ("last", [at(hours=3)]), ("all", [at(hours=hour) for hour in range(4)])],
)
def test_after_a_downtime_the_catch_up_policy_decides_which_instants_fire(
    fleet: Fleet, catch_up, expected
):
    schedule = fleet.schedule(
        fleet.agent(), EVERY_HOUR, catch_up=catch_up, catch_up_window_seconds=6 * 3600
    )
    due.claim_due_schedules(at(hours=3, minutes=30))
    schedule.refresh_from_db()
    assert fired(schedule) == expected
    assert schedule.fire_count == len(expected)
    assert schedule.missed_count == 4 - len(expected)
    assert schedule.next_fire_at == at(hours=4)


def test_an_hour_without_beat_makes_one_late_firing_and_counts_the_others(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE)
    due.claim_due_schedules(at(10, minutes=59))
    schedule.refresh_from_db()
    late = schedule.firings.get(outcome="")
    assert (late.due_at, late.late_seconds) == (at(minutes=59), 10)
    assert schedule.missed_count == 59


def test_every_missed_instant_is_recorded_as_a_skipped_firing(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE)
    due.claim_due_schedules(at(minutes=3))
    missed = [(at(minutes=minute), "skipped", "missed") for minute in range(3)]
    assert outcomes(schedule) == [*missed, (at(minutes=3), "", "")]


@pytest.mark.parametrize("catch_up", ["skip", "last", "all"])
def test_an_instant_before_the_catch_up_window_never_fires(fleet: Fleet, catch_up):
    schedule = fleet.schedule(
        fleet.agent(), EVERY_HOUR, catch_up=catch_up, catch_up_window_seconds=600
    )
    due.claim_due_schedules(at(601))
    schedule.refresh_from_db()
    assert outcomes(schedule) == [(NOON, "skipped", "missed")]
    assert (schedule.fire_count, schedule.missed_count) == (0, 1)
    assert schedule.last_fire_at is None


@pytest.mark.parametrize("catch_up", ["last", "all"])
def test_an_instant_at_the_edge_of_the_catch_up_window_fires(fleet: Fleet, catch_up):
    schedule = fleet.schedule(
        fleet.agent(), EVERY_HOUR, catch_up=catch_up, catch_up_window_seconds=600
    )
    due.claim_due_schedules(at(600))
    assert fired(schedule) == [NOON]


def test_a_slightly_late_beat_skips_no_instant(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_HOUR, catch_up="skip")
    due.claim_due_schedules(at(59))
    assert fired(schedule) == [NOON]


def test_catch_up_all_has_an_upper_limit(fleet: Fleet):
    schedule = fleet.schedule(
        fleet.agent(), EVERY_MINUTE, catch_up="all", catch_up_window_seconds=86_400
    )
    due.claim_due_schedules(at(hours=5))
    assert fired(schedule) == [at(minutes=minute) for minute in range(201, 301)]


def test_after_a_long_downtime_only_the_latest_instants_are_caught_up(fleet: Fleet):
    schedule = fleet.schedule(
        fleet.agent(), EVERY_MINUTE, catch_up="all", catch_up_window_seconds=7 * 86_400
    )
    due.claim_due_schedules(at(days=3))
    minutes = 3 * 24 * 60
    assert fired(schedule) == [at(minutes=minute) for minute in range(minutes - 99, minutes + 1)]


def test_a_year_without_beat_costs_a_bounded_number_of_rows(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), EVERY_MINUTE, next_fire_at=at(days=-365))
    due.claim_due_schedules(NOON)
    schedule.refresh_from_db()
    assert fired(schedule) == [NOON]
    assert schedule.firings.count() <= plan.MOST_CAUGHT_UP + 1
    assert schedule.next_fire_at == at(60)


# --- intervals ------------------------------------------------------------------------------


def test_an_interval_fires_and_its_next_fire_time_is_one_interval_later(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "15m", interval_seconds=900)
    due.claim_due_schedules(at(2))
    schedule.refresh_from_db()
    assert fired(schedule) == [NOON]
    assert schedule.next_fire_at == at(902)


def test_an_interval_missed_many_times_fires_once_and_misses_nothing(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "1m", interval_seconds=60)
    due.claim_due_schedules(at(hours=5))
    schedule.refresh_from_db()
    assert fired(schedule) == [NOON]
    assert schedule.missed_count == 0


@pytest.mark.parametrize("waiting", [True, False], ids=["queued", "running"])
def test_an_interval_is_postponed_while_its_last_work_is_unfinished(fleet: Fleet, waiting):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60, overlap="queue")
    if waiting:
        fleet.enqueue(agent)
    assert fleet.fire(schedule).outcome == ("queued" if waiting else "started")
    due.claim_due_schedules(at(60))
    schedule.refresh_from_db()
    assert schedule.firings.count() == 1
    assert (schedule.next_fire_at, schedule.fire_count) == (at(120), 0)


def test_an_interval_counts_from_the_completion_of_its_run(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    due.claim_due_schedules(at(60))
    fleet.finish(job, now=at(100))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (at(100), at(160))


def test_other_work_of_the_agent_does_not_postpone_an_interval(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.enqueue(agent)
    due.claim_due_schedules(NOON)
    assert fired(schedule) == [NOON]


# --- computing ahead ------------------------------------------------------------------------


def test_the_fire_time_after_the_next_one_is_computed_ahead(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "17 3 * * *", next_fire_at=at(1))
    _next_cron_fire.cache_clear()
    due.compute_next_fires_ahead(NOON, lambda: NOON)
    assert _next_cron_fire.cache_info().misses == 1
    due.claim_due_schedules(at(1))
    assert _next_cron_fire.cache_info().misses == 1
    schedule.refresh_from_db()
    assert schedule.fire_count == 1


def test_computing_ahead_ends_before_the_first_schedule_is_due(fleet: Fleet):
    fleet.schedule(fleet.agent(), "18 3 * * *", next_fire_at=at(1))
    _next_cron_fire.cache_clear()
    due.compute_next_fires_ahead(NOON, lambda: at(0.96))
    assert _next_cron_fire.cache_info().misses == 0


def test_computing_ahead_leaves_unreadable_schedules_to_the_claim(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "whenever", next_fire_at=at(1))
    due.compute_next_fires_ahead(NOON, lambda: NOON)
    schedule.refresh_from_db()
    assert schedule.state == "active"
