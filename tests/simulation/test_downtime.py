"""A day without a beat, then three concurrent beats: each catch-up policy takes effect once."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, last_work, outcomes, reread, start, states, tick
from tests.simulation.beats import Beats, Draft, Entry

HOUR = timedelta(hours=1)
# Beat ran at noon, and again a day and five minutes later.
BACK = at(hours=24, minutes=5)
SPREAD = timedelta(seconds=30)


def hours(*parts: range) -> list[datetime]:
    return [at(hours=hour) for part in parts for hour in part]


def fired(entries: list[Entry]) -> list[datetime]:
    return [entry.due_at for entry in entries if not entry.was_missed]


def missed(entries: list[Entry]) -> list[datetime]:
    return [entry.due_at for entry in entries if entry.was_missed]


def draft(text: str, catch_up: str, window_hours: float, **more: object) -> Draft:
    seconds = window_hours * 3600
    return {"text": text, "catch_up": catch_up, "catch_up_window_seconds": seconds, **more}


def run_three_beats(beats: Beats, moment: datetime) -> None:
    """Run three beats at the moment, and one when all late firings are to be decided."""
    beats.run(*[[moment]] * 3)
    beats.run([moment + SPREAD])


# --- a day ----------------------------------------------------------------------------------

EVERY_HOUR = "0 * * * *"
EVERY_TEN_MINUTES = [at(minutes=minute) for minute in range(10, 24 * 60 + 1, 10)]
EVERY_90_MINUTES = [at(minutes=minute) for minute in range(90, 24 * 60 + 1, 90)]
AFTER_A_DAY: tuple[tuple[Draft, list[datetime], list[datetime]], ...] = (
    (draft(EVERY_HOUR, "all", 48), hours(range(1, 25)), []),
    (draft(EVERY_HOUR, "all", 6), hours(range(19, 25)), hours(range(1, 19))),
    (draft(EVERY_HOUR, "last", 1), hours(range(24, 25)), hours(range(1, 24))),
    (draft(EVERY_HOUR, "last", 0.05), [], hours(range(1, 25))),
    (draft(EVERY_HOUR, "skip", 48), [], hours(range(1, 25))),
    (draft("*/10 * * * *", "all", 48), EVERY_TEN_MINUTES[-100:], EVERY_TEN_MINUTES[:-100]),
    (draft("every 90 minutes", "all", 48), EVERY_90_MINUTES, []),
    (draft("every 90 minutes", "last", 1), EVERY_90_MINUTES[-1:], EVERY_90_MINUTES[:-1]),
    (draft("every 90 minutes", "skip", 1), [], EVERY_90_MINUTES),
    (draft("at 18:00", "last", 48), hours(range(6, 7)), []),
    (draft("at 18:00", "last", 1), [], hours(range(6, 7))),
)


@pytest.mark.fault("F7")
def test_after_a_day_each_catch_up_policy_fires_and_records_its_instants(beats: Beats):
    beats.create(NOON, *(each for each, _, _ in AFTER_A_DAY))
    beats.run([NOON])
    run_three_beats(beats, BACK)
    ledger, counts = beats.ledger(), beats.counts()
    for number, (each, to_fire, to_miss) in enumerate(AFTER_A_DAY):
        entries = ledger[f"{number}"]
        assert (fired(entries), missed(entries)) == (to_fire, to_miss), each
        assert counts[f"{number}"][:2] == (len(to_fire), len(to_miss)), each
        assert all(entry.outcome in ("started", "queued", "skipped") for entry in entries)
    assert [counts[f"{number}"][2] for number in (9, 10)] == ["active", "failed"]


def test_after_the_catch_up_schedules_fire_regularly(beats: Beats):
    beats.create(NOON, *(each for each, _, _ in AFTER_A_DAY))
    run_three_beats(beats, BACK)
    before = {name: len(entries) for name, entries in beats.ledger().items()}
    beats.run(*[[at(hours=25)]] * 3)
    after = beats.ledger()
    more = {name: len(entries) - before[name] for name, entries in after.items()}
    assert more == {**{f"{n}": 1 for n in range(5)}, "5": 6, **{f"{n}": 0 for n in range(6, 11)}}


@pytest.mark.parametrize("ended", [True, False], ids=["its run has ended", "its run goes on"])
@pytest.mark.parametrize("catch_up", ["skip", "last", "all"])
def test_an_interval_that_waits_for_its_run_misses_no_instant(fleet: Fleet, catch_up, ended):
    schedule = create(fleet.agent(), "30m", catch_up=catch_up)
    tick(NOON)
    job = start(fleet, schedule)
    if ended:
        fleet.finish(job, now=at(minutes=10))
    tick(BACK)
    late = [(at(minutes=40), "started", "")] if ended else []
    assert outcomes(schedule) == [(NOON, "started", ""), *late]
    assert reread(schedule).next_fire_at == BACK + timedelta(minutes=30)
    assert reread(schedule).missed_count == 0


def test_a_schedule_paused_until_the_downtime_fires_after_it(fleet: Fleet):
    """Instants during the pause do not count as missed."""
    schedule = create(fleet.agent(), EVERY_HOUR, catch_up="all", catch_up_window_seconds=172_800)
    type(schedule).objects.update(state="paused", pause_until=at(hours=6))
    tick(BACK)
    assert (outcomes(schedule), states(schedule)[0]) == ([], "active")
    tick(at(hours=25))
    assert outcomes(schedule) == [(at(hours=25), "started", "")]
    assert last_work(schedule).firing is not None


# --- more instants than are enumerated --------------------------------------------------------


@pytest.mark.parametrize("text", ["* * * * *", "every minute"])
@pytest.mark.parametrize("count", [999, 1000, 1001, 1002, 1050, 1100, 1101, 5000])
def test_after_a_long_downtime_the_last_hundred_instants_are_recorded(fleet: Fleet, text, count):
    window: Draft = {"catch_up": "all", "catch_up_window_seconds": 30 * 86_400}
    schedule = create(fleet.agent(), text, overlap="queue", **window)
    tick(at(minutes=count))
    found = [due_at for due_at, outcome, _ in outcomes(schedule) if outcome != "skipped"]
    assert found == [at(minutes=minute) for minute in range(count - 99, count + 1)]
    assert reread(schedule).next_fire_at == at(minutes=count + 1)


# --- clock changes during a downtime ----------------------------------------------------------


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _night(zone: str, **policies: str) -> list[Draft]:
    return [
        draft("30 2 * * *", "all", 48, timezone=zone, **policies),
        draft("0,30 1-3 * * *", "all", 48, timezone=zone, **policies),
        draft("*/30 * * * *", "all", 48, timezone=zone, **policies),
        draft("every 90 minutes", "all", 48, timezone=zone, **policies),
        draft("30 2 * * *", "last", 48, timezone=zone, **policies),
    ]


SPRING, AUTUMN = _utc("2026-03-28T23:00"), _utc("2026-10-24T22:00")
GAPS = {
    "shift": (["01:30"], ["00:00", "00:30", "01:00", "01:30"]),
    "next_valid": (["01:00"], ["00:00", "00:30", "01:00", "01:30"]),
    "skip": ([], ["00:00", "00:30", "01:00", "01:30"]),
}
TWICE = {
    "first": (["00:30"], ["23:00", "23:30", "00:00", "00:30", "02:00", "02:30"]),
    "second": (["01:30"], ["23:00", "23:30", "01:00", "01:30", "02:00", "02:30"]),
    "both": (
        ["00:30", "01:30"],
        ["23:00", "23:30", "00:00", "00:30", "01:00", "01:30", "02:00", "02:30"],
    ),
}


def _in_the_night(entries: list[Entry]) -> list[str]:
    return [f"{at:%H:%M}" for at in fired(entries)]


@pytest.mark.parametrize("gap", GAPS)
def test_a_skipped_hour_during_a_downtime_follows_the_gap_policy(beats: Beats, gap):
    beats.create(SPRING, *_night("Europe/Berlin", gap=gap))
    run_three_beats(beats, SPRING + 23 * HOUR)
    ledger = beats.ledger()
    at_half_past_two, around_it = GAPS[gap]
    assert _in_the_night(ledger.get("0", [])) == at_half_past_two
    assert _in_the_night(ledger["1"]) == around_it
    assert len(ledger["2"]) == 46
    assert len(ledger["3"]) == 15
    assert _in_the_night(ledger.get("4", [])) == at_half_past_two


@pytest.mark.parametrize("overlap_hour", TWICE)
def test_a_repeated_hour_during_a_downtime_follows_the_overlap_policy(beats: Beats, overlap_hour):
    beats.create(AUTUMN, *_night("Europe/Berlin", overlap_hour=overlap_hour))
    run_three_beats(beats, AUTUMN + 25 * HOUR)
    ledger = beats.ledger()
    at_half_past_two, around_it = TWICE[overlap_hour]
    assert _in_the_night(ledger["0"]) == at_half_past_two
    assert _in_the_night(ledger["1"]) == around_it
    assert len(ledger["2"]) == 50
    assert len(ledger["3"]) == 16
    assert _in_the_night(ledger["4"]) == at_half_past_two[-1:]
