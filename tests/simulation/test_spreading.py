"""Late firings are spread over half a minute; jitter does not change due times."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.db import transaction

from agents_app.conf import CONF
from agents_app.models import Firing
from agents_app.schedules import due, firings
from agents_app.schedules.plan import decision_time
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, outcomes, reread, tick
from tests.simulation.beats import Beats, Draft
from tests.simulation.conftest import NewBeats

SECOND = timedelta(seconds=1)
HALF_A_MINUTE = timedelta(seconds=30)
EVERY_HOUR = "0 * * * *"
AN_HOUR_LATE = at(hours=2)


def hourly(fleet: Fleet, count: int, **values: object) -> None:
    """Schedules that are first due at one o'clock."""
    agent = fleet.agent(scale=count)
    draft: Draft = {"catch_up_window_seconds": 7200, **values}
    for number in range(count):
        create(agent, EVERY_HOUR, name=f"s{number}", **draft)


def decided_at() -> list[datetime]:
    """The decision times of all firings, in the order of schedules and due times."""
    waiting = Firing.objects.filter(outcome="").order_by("schedule_id", "due_at")
    return list(waiting.values_list("decide_at", flat=True))


# --- late firings ---------------------------------------------------------------------------


def test_three_late_firings_are_decided_immediately(fleet: Fleet):
    hourly(fleet, 3)
    now = at(hours=1, minutes=30)
    due.claim_due_schedules(now)
    assert decided_at() == [at(hours=1)] * 3
    assert firings.decide_firings(now) == 3


def test_four_late_firings_are_spread_and_decided_later(fleet: Fleet):
    hourly(fleet, 4)
    now = at(hours=1, minutes=30)
    tick(now)
    moments = decided_at()
    assert len(set(moments)) == 4
    assert all(now <= moment < now + HALF_A_MINUTE for moment in moments)
    for number, moment in enumerate(sorted(moments)):
        assert Firing.objects.exclude(outcome="").count() == number
        tick(moment)
    assert decided_at() == []


@pytest.mark.parametrize(("late", "spread"), [(timedelta(seconds=10), False), (SECOND * 11, True)])
def test_firings_of_a_slightly_late_beat_are_not_spread(fleet: Fleet, late, spread):
    hourly(fleet, 10)
    due.claim_due_schedules(at(hours=1) + late)
    assert (set(decided_at()) != {at(hours=1)}) == spread


def test_punctual_firings_do_not_wait_for_late_ones(fleet: Fleet):
    hourly(fleet, 5, catch_up="all")
    now = at(hours=2) + SECOND
    due.claim_due_schedules(now)
    punctual = Firing.objects.filter(due_at=at(hours=2))
    assert set(punctual.values_list("decide_at", flat=True)) == {at(hours=2)}
    late = Firing.objects.filter(due_at=at(hours=1)).values_list("decide_at", flat=True)
    assert len(set(late)) == 5
    assert min(late) >= now


def test_a_hundred_instants_of_one_schedule_are_spread_evenly(fleet: Fleet):
    create(fleet.agent(), "* * * * *", catch_up="all", catch_up_window_seconds=86_400)
    now = at(hours=2)
    due.claim_due_schedules(now)
    seconds = [(moment - now).total_seconds() for moment in decided_at()[:-1]]
    thirds = [sum(low <= second < low + 10 for second in seconds) for low in (0, 10, 20)]
    assert sum(thirds) == 99
    # The times are hashes of the schedule's id: 33 of 99 on average, 10 is five deviations below.
    assert min(thirds) > 10


def test_a_repeated_claim_spreads_firings_to_the_same_times(fleet: Fleet):
    """The beat of the first claim died before its commit."""
    hourly(fleet, 20)
    now = at(hours=1, minutes=30)
    with transaction.atomic():
        due.claim_due_schedules(now)
        first = decided_at()
        transaction.set_rollback(True)
    due.claim_due_schedules(now)
    assert decided_at() == first
    assert len(set(first)) == 20


def test_threshold_and_duration_of_spreading_are_settings(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(due, "CONF", replace(CONF, spread_after=5, spread_seconds=600))
    hourly(fleet, 5)
    now = at(hours=1, minutes=30)
    with transaction.atomic():
        due.claim_due_schedules(now)
        assert set(decided_at()) == {at(hours=1)}
        transaction.set_rollback(True)
    create(fleet.agent("another"), EVERY_HOUR)
    due.claim_due_schedules(now)
    assert now + HALF_A_MINUTE < max(decided_at()) < now + timedelta(minutes=10)


def test_firings_are_spread_to_the_same_times_by_any_number_of_beats(new_beats: NewBeats):
    """A firing has the same decision time with every number of beats."""
    drafts = [{"text": EVERY_HOUR, "catch_up": "all", "jitter_seconds": 5.0 * n} for n in range(9)]
    one, three = new_beats(), new_beats()
    for beats, number in ((one, 1), (three, 3)):
        beats.create(NOON, *drafts)
        beats.run(*[[AN_HOUR_LATE]] * number)
    moments = [_moments(beats) for beats in (one, three)]
    assert moments[0] == moments[1]
    assert len({decide_at for _, _, decide_at in moments[0]}) > 9


def _moments(beats: Beats) -> list[tuple[str, datetime, datetime]]:
    return [
        (name, entry.due_at, entry.decide_at)
        for name, entries in beats.ledger().items()
        for entry in entries
    ]


# --- jitter ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "jitter", "longest"),
    [
        ("every 90 minutes", {"jitter_percent": 10.0}, timedelta(minutes=9)),
        ("every 90 minutes", {"jitter_percent": 1.0, "jitter_seconds": 6.0}, SECOND * 60),
        ("30 * * * *", {"jitter_seconds": 45.0}, SECOND * 45),
        ("at 13:30", {"jitter_seconds": 45.0}, SECOND * 45),
    ],
)
def test_jitter_uses_its_whole_range_and_stays_within_it(fleet: Fleet, text, jitter, longest):
    agent = fleet.agent(scale=60)
    for number in range(60):
        create(agent, text, name=f"s{number}", overlap="queue", **jitter)
    for minute in (30, 90):
        due.claim_due_schedules(at(minutes=minute))
    waits = [firing.decide_at - firing.due_at for firing in Firing.objects.all()]
    assert timedelta(0) <= min(waits) < longest * 0.1
    assert longest * 0.9 < max(waits) < longest


def test_jitter_moves_no_instant(fleet: Fleet):
    """Neither the due time nor the next fire time."""
    schedule = create(fleet.agent(), "every 90 minutes", overlap="queue", jitter_percent=10.0)
    for minute in range(0, 24 * 60 + 1, 10):
        tick(at(minutes=minute))
    every = [at(minutes=minute) for minute in range(90, 24 * 60 + 1, 90)]
    assert [due_at for due_at, _, _ in outcomes(schedule)] == every
    assert reread(schedule).next_fire_at == every[-1] + timedelta(minutes=90)


def test_a_firing_within_its_jitter_is_not_late_after_a_downtime(fleet: Fleet):
    """A firing is late when it should have been decided, not when it was due."""
    hourly(fleet, 20, jitter_seconds=1800.0)
    now = at(hours=1, minutes=10)
    due.claim_due_schedules(now)
    recorded = list(Firing.objects.select_related("schedule"))
    waiting = [f for f in recorded if decision_time(f.schedule, f.due_at) >= now]
    assert len(waiting) > 5
    assert all(f.decide_at == decision_time(f.schedule, f.due_at) for f in waiting)
