"""The clock jumps by an hour and back: no instant fires twice, and none is lost."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from agents_app.models import Schedule
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, outcomes, reread, tick
from tests.simulation.beats import Beats, Draft

DAY_SECONDS = 86_400.0
ALL: Draft = {"catch_up": "all", "catch_up_window_seconds": DAY_SECONDS}


def minutes(*parts: Iterable[float]) -> list[datetime]:
    return [at(minutes=minute) for part in parts for minute in part]


# --- several beats --------------------------------------------------------------------------

# Text and policy, and the minutes between due times from noon on.
DRAFTS: tuple[tuple[Draft, int], ...] = (
    ({"text": "*/5 * * * *", **ALL}, 5),
    ({"text": "every 7 minutes", **ALL}, 7),
    ({"text": "*/10 * * * *", "catch_up": "last"}, 10),
    ({"text": "*/15 * * * *", "catch_up": "skip"}, 15),
    ({"text": "every 6 minutes", "catch_up": "last"}, 6),
    ({"text": "at 14:30", **ALL}, 150),
)
LAST = 300
STEADY = minutes(range(0, LAST, 3))
# At two o'clock, an hour back; at two o'clock, an hour ahead, and at four an hour back again.
BACK = minutes(range(0, 120, 3), range(60, LAST, 3))
AHEAD = minutes(range(0, 120, 3), range(180, 240, 3), range(180, LAST, 3))


def due_by(every: int) -> list[datetime]:
    last = every if every == 150 else LAST
    return minutes(range(every, last + 1, every))


@pytest.mark.fault("F17", "F18")
def test_beats_whose_clocks_jump_fire_each_instant_once(beats: Beats):
    beats.create(NOON, *(draft for draft, _ in DRAFTS))
    beats.run(STEADY, BACK, AHEAD)
    beats.run([at(minutes=LAST)])
    ledger = beats.ledger()
    for number, (draft, every) in enumerate(DRAFTS):
        entries = ledger[f"{number}"]
        assert [entry.due_at for entry in entries] == due_by(every), draft
        missed = sum(entry.was_missed for entry in entries)
        assert beats.counts()[f"{number}"][:2] == (len(entries) - missed, missed)
        if draft["catch_up"] == "all":
            assert {entry.outcome for entry in entries} <= {"started", "queued"}


def test_without_guards_beats_whose_clocks_jump_fire_instants_twice(beats: Beats):
    """Shows that the check above can fail."""
    beats.create(NOON, *(draft for draft, _ in DRAFTS))
    beats.arena.do("drop_index", model="Firing", name="firing_once_per_due_instant")
    beats.run(STEADY, BACK, AHEAD, broken=True)
    times = Counter(
        (name, entry.due_at) for name, entries in beats.ledger().items() for entry in entries
    )
    assert max(times.values()) > 1


# --- one beat -------------------------------------------------------------------------------

EVERY_TEN = "*/10 * * * *"
ON_THE_DOT = minutes(range(10, 61, 10))


def _outcomes(schedule: Schedule) -> list[tuple[datetime, bool]]:
    """The due times, and whether each fired."""
    return [(due_at, outcome != "skipped") for due_at, outcome, _ in outcomes(schedule)]


@pytest.mark.parametrize(
    ("catch_up", "fired"),
    [("all", ON_THE_DOT), ("last", ON_THE_DOT[-1:]), ("skip", ON_THE_DOT[-1:])],
)
@pytest.mark.fault("F17")
def test_a_clock_an_hour_ahead_acts_as_a_downtime_and_its_correction_fires_nothing(
    fleet: Fleet, catch_up, fired
):
    schedule = create(
        fleet.agent(), EVERY_TEN, overlap="queue", catch_up=catch_up, catch_up_window_seconds=7200
    )
    tick(at(hours=1))
    jumped = _outcomes(schedule)
    assert jumped == [(instant, instant in fired) for instant in ON_THE_DOT]
    for moment in minutes(range(0, 61, 5)):
        tick(moment)
    assert _outcomes(schedule) == jumped
    tick(at(minutes=70))
    assert _outcomes(schedule) == [*jumped, (at(minutes=70), True)]


@pytest.mark.parametrize("catch_up", ["all", "last", "skip"])
@pytest.mark.fault("F18")
def test_a_clock_set_back_by_an_hour_repeats_and_skips_no_instant(fleet: Fleet, catch_up):
    schedule = create(fleet.agent(), EVERY_TEN, overlap="queue", catch_up=catch_up)
    for moment in minutes(range(0, 61, 5)):
        tick(moment)
    next_fire_at = reread(schedule).next_fire_at
    for moment in minutes(range(0, 61, 5)):
        tick(moment)
        assert reread(schedule).next_fire_at == next_fire_at
    for moment in minutes(range(65, 121, 5)):
        tick(moment)
    every = minutes(range(10, 121, 10))
    assert _outcomes(schedule) == [(instant, True) for instant in every]
    assert reread(schedule).fire_count == len(every)


@pytest.mark.parametrize("text", ["10m", "every 10 minutes"])
def test_an_interval_continues_after_the_clock_was_corrected(fleet: Fleet, text):
    """No instant fires twice, and none fires in the repeated hour."""
    schedule = create(fleet.agent(), text, overlap="queue", catch_up="last")
    tick(at(hours=1))
    before = len(outcomes(schedule))
    for moment in minutes(range(0, 60)):
        tick(moment)
    assert len(outcomes(schedule)) == before
    assert reread(schedule).next_fire_at == at(minutes=70)


def test_a_one_shot_fires_once_despite_clock_jumps(fleet: Fleet):
    schedule = create(fleet.agent(), "at 12:30")
    for moment in minutes([0, 60], range(0, 121, 5), [0]):
        tick(moment)
    assert _outcomes(schedule) == [(at(minutes=30), True)]


def test_a_firing_that_waits_for_its_jitter_is_decided_once_despite_a_clock_jump(fleet: Fleet):
    """A firing recorded before the clock was set back waits for its decision time."""
    schedule = create(fleet.agent(), "at 12:30", jitter_seconds=600)
    tick(at(minutes=30))
    decide_at = schedule.firings.get().decide_at
    assert decide_at > at(minutes=30)
    tick(decide_at - timedelta(hours=1))
    assert outcomes(schedule) == [(at(minutes=30), "", "")]
    for _ in range(2):
        tick(decide_at)
    assert outcomes(schedule) == [(at(minutes=30), "started", "")]
