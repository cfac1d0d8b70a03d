"""The policies of a schedule over time: anchors, jitter, late firings, counters."""

from datetime import datetime, timedelta

import pytest

from agents_app.conf import CONF
from agents_app.models import Schedule, Tenant
from agents_app.runs import control
from agents_app.schedules import due, firings
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, last_work, outcomes, reread, run, start, tick


def fired(schedule: Schedule) -> list[datetime]:
    return [due_at for due_at, outcome, _ in outcomes(schedule) if outcome != "skipped"]


# --- anchors --------------------------------------------------------------------------------


def test_a_duration_fires_immediately_and_then_counts_from_the_end_of_each_run(fleet: Fleet):
    schedule = create(fleet.agent(), "15m")
    tick(NOON)
    fleet.finish(start(fleet, schedule), now=at(minutes=20))
    tick(at(minutes=34)), tick(at(minutes=35))
    assert fired(schedule) == [NOON, at(minutes=35)]


def test_a_phrase_waits_first_and_then_counts_elapsed_time_independent_of_runs(fleet: Fleet):
    schedule = create(fleet.agent(scale=3), "every 15 minutes", overlap="queue")
    for minute in range(0, 61, 5):
        tick(at(minutes=minute))
    assert fired(schedule) == [at(minutes=minute) for minute in (15, 30, 45, 60)]


@pytest.mark.parametrize(
    ("text", "anchor", "first", "second"),
    [
        ("10m", "start", at(minutes=10), at(minutes=20)),
        ("every 10 minutes", "completion", NOON, at(minutes=17)),
    ],
)
def test_the_anchor_can_be_chosen(fleet: Fleet, text, anchor, first, second):
    schedule = create(fleet.agent(), text, anchor=anchor)
    tick(first)
    fleet.finish(start(fleet, schedule), now=first + timedelta(minutes=7))
    tick(second - timedelta(seconds=1)), tick(second)
    assert fired(schedule) == [first, second]


def test_an_elapsed_interval_keeps_its_times_when_beat_is_late(fleet: Fleet):
    schedule = create(fleet.agent(scale=5), "every 10 minutes", overlap="queue")
    tick(at(minutes=13))
    assert reread(schedule).next_fire_at == at(minutes=20)


# --- jitter and late firings ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "jitter", "longest"),
    [
        ("every hour", {"jitter_percent": 10}, timedelta(minutes=6)),
        ("every hour", {"jitter_seconds": 90}, timedelta(seconds=90)),
        ("0 13 * * *", {"jitter_seconds": 90}, timedelta(seconds=90)),
    ],
)
def test_jitter_delays_the_decision_and_never_the_instant(fleet: Fleet, text, jitter, longest):
    agent = fleet.agent(scale=20)
    made = [create(agent, text, name=f"s{number}", **jitter) for number in range(20)]
    due.claim_due_schedules(at(hours=1))
    waits = {s.firings.get().decide_at - s.firings.get().due_at for s in made}
    assert all(timedelta(0) <= wait < longest for wait in waits)
    assert len(waits) > 15
    assert firings.decide_firings(at(hours=1) + longest) == 20


def test_beat_wakes_up_for_a_firing_that_waits_for_its_jitter(fleet: Fleet):
    schedule = create(fleet.agent(), "0 13 * * *", jitter_seconds=600)
    tick(at(hours=1))
    firing = schedule.firings.get()
    assert (firing.outcome, due.next_due_at()) == ("", firing.decide_at)
    tick(firing.decide_at)
    assert outcomes(schedule) == [(at(hours=1), "started", "")]


@pytest.mark.parametrize(("count", "spread"), [(3, False), (4, True)])
def test_more_than_three_late_firings_are_spread(fleet: Fleet, count, spread):
    agent = fleet.agent(scale=9)
    made = [create(agent, "every hour", name=f"s{number}") for number in range(count)]
    now = at(hours=1, minutes=5)
    due.claim_due_schedules(now)
    decided = {schedule.firings.get().decide_at for schedule in made}
    if spread:
        longest = timedelta(seconds=CONF.spread_seconds)
        assert all(now <= moment < now + longest for moment in decided)
        assert len(decided) == count
    else:
        assert decided == {at(hours=1)}


# --- tenants --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "upcoming"),
    [
        ("0 * * * *", at(hours=3)),
        ("*/15 * * * *", at(hours=2, minutes=15)),
        ("every 40 minutes", at(hours=2, minutes=40)),
    ],
)
def test_a_schedule_of_a_disabled_tenant_is_postponed_by_an_hour(fleet: Fleet, text, upcoming):
    schedule = create(fleet.agent(), text)
    Schedule.objects.update(next_fire_at=at(hours=1) if text != "every 40 minutes" else at(2400))
    Tenant.objects.update(disabled_at=NOON)
    tick(at(hours=1))
    seen = reread(schedule)
    assert (seen.state, seen.next_fire_at) == ("active", upcoming)
    assert [outcome for _, *outcome in outcomes(schedule)] == [["skipped", "tenant_disabled"]]
    assert (seen.fire_count, seen.skipped_count, seen.missed_count) == (0, 1, 0)


# --- counters -------------------------------------------------------------------------------


def test_firings_are_counted_by_outcome(fleet: Fleet):
    agent = fleet.agent()
    schedule = create(agent, "* * * * *")
    run(fleet, schedule, "succeeded", at(60))
    control.pause_agent(agent, "ann", at(61))
    tick(at(120))
    control.resume_agent(agent, "ann", at(121))
    tick(at(minutes=6, seconds=30))
    seen = reread(schedule)
    assert (seen.fire_count, seen.skipped_count) == (3, 1)
    assert (seen.missed_count, seen.late_count) == (3, 1)
    assert (seen.last_fire_at, seen.next_fire_at) == (at(minutes=6), at(minutes=7))
    assert last_work(schedule).firing is not None
    assert len(outcomes(schedule)) == 6


def test_a_slightly_late_beat_makes_no_late_firing(fleet: Fleet):
    schedule = create(fleet.agent(), "0 * * * *")
    tick(at(hours=1, seconds=10))
    assert (reread(schedule).fire_count, reread(schedule).late_count) == (1, 0)
