"""Several beats, killed at any moment: each due instant fires exactly once."""

import random
import time
from datetime import datetime, timedelta

import pytest

from tests.parts.waiting import wait_for
from tests.races.arena import Arena, Racer
from tests.races.checks import EPOCH

EXPRESSIONS = ["* * * * *", "*/7 * * * *", "3,33 * * * *"]
MINUTE = 60.0


def _make_schedules(
    arena: Arena, agents: int = 5, schedules: int = 3, **columns: object
) -> list[int]:
    made: list[int] = arena.do("make_agents", count=agents)
    arena.do(
        "make_schedules", agents=made, count=schedules, expressions=EXPRESSIONS, overlap="queue",
        **columns,
    )  # fmt: skip
    return made


@pytest.mark.slow
@pytest.mark.fault("F5")
def test_three_beats_that_are_killed_repeatedly_fire_each_instant_once(arena: Arena):
    """One minute passes every half second; a beat is killed every fifth of a second."""
    _make_schedules(arena)
    seconds, speed = 10.0, 120.0
    start_at = time.time() + 0.3
    chance = random.Random(20260302)

    def start_beat() -> Racer:
        return arena.start("beat", start_at=start_at, seconds=seconds, speed=speed)

    beats, kills = [start_beat() for _ in range(3)], 0
    while time.time() < start_at + seconds - 0.5:
        time.sleep(chance.uniform(0.05, 0.35))
        victim = chance.randrange(3)
        beats[victim].kill()
        beats[victim] = start_beat()
        kills += 1
    for beat in beats:
        beat.join()
    assert kills > 20
    _tick_until_decided(arena, seconds * speed / MINUTE)
    assert arena.do("find", check="wrong_firings") == []
    assert arena.do("find", check="broken_invariants") == []
    assert arena.do("count", model="work") > 100


@pytest.mark.parametrize("beats", [2, 3])
@pytest.mark.fault("F6")
def test_several_beats_fire_each_instant_once_without_errors(arena: Arena, beats):
    _make_schedules(arena)
    errors = arena.race(*[("beat", {"seconds": 1.5, "speed": 300})] * beats)
    # On a slow machine late firings are spread over minutes: decide them all here.
    arena.do("tick", minutes=8, decided_by=60)
    assert errors == [[]] * beats
    assert arena.do("find", check="wrong_firings") == []
    assert arena.do("find", check="undecided_firings") == []
    assert arena.do("find", check="broken_invariants") == []


def test_without_the_index_the_lock_and_the_comparison_instants_fire_twice(arena: Arena):
    """Shows that the check above can fail, and that it passes because of these guards."""
    _make_schedules(arena)
    arena.do("drop_index", model="Firing", name="firing_once_per_due_instant")
    arena.race(*[("beat", {"seconds": 2, "speed": 300, "broken": True})] * 3)
    assert arena.do("find", check="doubled_firings") != []


@pytest.mark.parametrize(
    ("at_sql", "after"),
    [
        ("INTO drover_firing", False),
        ("INTO drover_firing", True),
        ("UPDATE drover_schedule", True),
        ('INTO "drover_work_item"', True),
        ('UPDATE "drover_firing"', True),
    ],
    ids=["claim read", "firing written", "next fire set", "work written", "outcome written"],
)
@pytest.mark.fault("F5")
def test_a_beat_killed_during_a_transaction_leaves_no_partial_change(arena: Arena, at_sql, after):
    _make_schedules(arena, agents=2, schedules=2)
    assert arena.start("tick_and_die", at_sql=at_sql, after=after).died_of_sigkill()
    assert arena.do("find", check="broken_invariants") == []
    arena.do("tick", minutes=0)
    assert arena.do("find", check="wrong_firings") == []
    assert arena.do("find", check="undecided_firings") == []
    assert arena.do("count", model="work") == 4


@pytest.mark.fault("F5")
def test_a_firing_of_a_killed_beat_is_decided_by_the_next_beat(arena: Arena):
    _make_schedules(arena, agents=2, schedules=2)
    assert arena.start("claim_and_die").died_of_sigkill()
    assert len(arena.do("find", check="undecided_firings")) == 4
    arena.do("tick", minutes=0)
    assert arena.do("find", check="undecided_firings") == []
    assert arena.do("find", check="wrong_firings") == []


# --- edits at the due instant ---------------------------------------------------------------


@pytest.mark.parametrize("change", ["pause", "cancel"])
@pytest.mark.fault("F78")
def test_a_schedule_ended_at_the_due_instant_fires_at_most_once_and_not_afterwards(
    arena: Arena, change
):
    _make_schedules(arena, agents=4, schedules=10)
    arena.race(("tick_at", {}), (f"{change}_schedules", {}), ("tick_at", {}))
    before = arena.do("count", model="work")
    state = {"pause": "paused", "cancel": "canceled"}[change]
    assert arena.do("count", model="schedule", state=state) == 40
    for minute in (1, 2, 60):
        arena.do("tick", minutes=minute)
    assert arena.do("count", model="work") == before <= 40
    assert arena.do("find", check="doubled_firings") == []
    assert arena.do("find", check="undecided_firings") == []
    assert arena.do("find", check="broken_invariants") == []


@pytest.mark.fault("F78")
def test_a_schedule_edited_at_the_due_instant_keeps_the_edit(arena: Arena):
    """It fires with the old or the new text, never both, and has the edited next fire time."""
    _make_schedules(arena, agents=4, schedules=10)
    edited: datetime = EPOCH + timedelta(minutes=30)
    arena.race(
        ("tick_at", {}), ("edit_schedules", {"next_fire_at": edited.isoformat()}), ("tick_at", {})
    )
    assert arena.do("count", model="schedule", next_fire_at=edited.isoformat()) == 40
    assert arena.do("find", check="doubled_firings") == []
    assert arena.do("count", model="work") <= 40
    before = arena.do("count", model="work", prompt="")
    arena.do("tick", minutes=30)
    assert arena.do("count", model="work", prompt="") == before
    assert arena.do("find", check="broken_invariants") == []


def _tick_until_decided(arena: Arena, minutes: float) -> None:
    """PostgreSQL keeps the locks of a killed process until it notices the closed connection,
    and a tick passes over locked rows: one of the next ticks decides them. Late firings are
    decided up to `spread_seconds` later, so the decisions are made for a later time."""

    def undecided() -> list[str]:
        arena.do("tick", minutes=minutes, decided_by=60)
        found: list[str] = arena.do("find", check="undecided_firings")
        return found

    wait_for(lambda: not undecided(), 10, lambda: str(undecided()))
