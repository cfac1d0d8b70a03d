"""`agents_app.triggers` as its callers see it."""

import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from threading import Thread

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.errors import TriggerParseError
from agents_app.triggers import (
    CronTrigger,
    IntervalTrigger,
    fires_between,
    last_fire_between,
    next_fire,
    parse_trigger,
    upcoming,
    zone,
)

NEW_YORK = zone("America/New_York")
START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_text_becomes_the_trigger_that_was_meant():
    assert isinstance(parse_trigger("0 9 * * 1-5"), CronTrigger)
    assert isinstance(parse_trigger(" @Daily"), CronTrigger)
    assert parse_trigger("1.5h") == IntervalTrigger("1.5h", timedelta(minutes=90))
    assert parse_trigger("10 min") == IntervalTrigger("10 min", timedelta(minutes=10))


def test_the_same_text_is_parsed_once():
    assert parse_trigger("7 7 * * *") is parse_trigger("7 7 * * *")


@pytest.mark.parametrize("text", ["", "  ", "bad", "soon please", "9 am", "-5m", "0 9", "\u00a0"])
def test_an_invalid_text_is_refused_with_the_accepted_forms(text):
    with pytest.raises(TriggerParseError) as caught:
        parse_trigger(text)
    assert "15m" in str(caught.value) or "10m" in str(caught.value)


@given(st.text() | st.text("0123456789*/,-@ dailyhm."))
def test_no_text_raises_anything_but_the_parse_error(text):
    try:
        parse_trigger(text)
    except TriggerParseError as error:
        assert error.text == text


def test_an_interval_counts_elapsed_time_through_a_clock_change():
    before_the_change = datetime(2026, 3, 8, 6, 30, tzinfo=UTC)
    fire = next_fire(parse_trigger("1d"), before_the_change, NEW_YORK)
    assert fire == before_the_change + timedelta(days=1)


def test_the_answer_is_in_utc_whatever_zone_the_question_is_in():
    tokyo = timezone(timedelta(hours=9))
    for text in ("0 9 * * *", "15m"):
        fire = next_fire(parse_trigger(text), START.astimezone(tokyo), NEW_YORK)
        assert fire is not None
        assert fire.tzinfo is UTC
        assert fire == next_fire(parse_trigger(text), START, NEW_YORK)


def test_upcoming_gives_as_many_as_asked():
    fires = upcoming(parse_trigger("0 9 * * *"), START, NEW_YORK, 3)
    assert [fire.isoformat() for fire in fires] == [
        "2026-01-01T14:00:00+00:00",
        "2026-01-02T14:00:00+00:00",
        "2026-01-03T14:00:00+00:00",
    ]
    assert upcoming(parse_trigger("0 9 * * *"), START, NEW_YORK, 0) == []


def test_a_period_excludes_its_start_includes_its_end_and_keeps_to_the_limit():
    hourly, end = parse_trigger("@hourly"), START + timedelta(hours=3)
    fires = fires_between(hourly, START, end, NEW_YORK, 100)
    assert fires == [START + timedelta(hours=n) for n in (1, 2, 3)]
    assert fires_between(hourly, START, end, NEW_YORK, 2) == fires[:2]
    assert fires_between(hourly, end, START, NEW_YORK, 100) == []


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["* * * * *", "*/7 3 * * *", "30 1,2 * * *", "0 0 1 * *", "90m", "0.5s"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
    st.timedeltas(timedelta(seconds=-10), timedelta(minutes=200)),
)
def test_the_last_fire_of_a_period_is_the_last_of_all_its_fires(text, start, length):
    trigger = parse_trigger(text)
    fires = fires_between(trigger, start, start + length, NEW_YORK, 100_000)
    last = last_fire_between(trigger, start, start + length, NEW_YORK)
    assert last == (fires[-1] if fires else None)


@pytest.fixture
def impatient_threads() -> Iterator[None]:
    """Threads take turns so often that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_share_an_expression_do_not_disturb_each_other(impatient_threads):
    trigger = parse_trigger("*/11 * * * *")
    expected = upcoming(trigger, START, NEW_YORK, 2000)
    wrong: list[datetime] = []

    def ask(second: int) -> None:
        # Another second for each thread, so that no answer comes from the cache.
        for minute in range(0, 6000, 20):
            at = START + timedelta(minutes=minute, seconds=second)
            if next_fire(trigger, at, NEW_YORK) != expected[bisect(expected, at)]:
                wrong.append(at)

    threads = [Thread(target=ask, args=(second,)) for second in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def seconds_spent(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def test_ten_thousand_schedules_of_one_expression_cost_next_to_nothing():
    trigger = parse_trigger("*/5 * * * *")
    spent = seconds_spent(lambda: [next_fire(trigger, START, NEW_YORK) for _ in range(10_000)])
    assert spent < 0.5


@pytest.mark.parametrize("expression", ["*/5 * * * *", "30 2 * * *", "0 9 1-7 * 1"])
def test_a_next_fire_is_found_no_slower_than_by_croniter_with_a_zone(expression):
    moments = [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(300)]
    ours = seconds_spent(
        lambda: [next_fire(parse_trigger(expression), at, NEW_YORK) for at in moments]
    )
    local = [at.astimezone(NEW_YORK) for at in moments]
    theirs = seconds_spent(lambda: [croniter(expression, at).get_next(datetime) for at in local])
    assert ours < theirs
