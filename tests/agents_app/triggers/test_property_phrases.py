"""Any phrase at any time in any zone: what it means, what it is kept as, how it is refused.

Seen red by breaking a copy of the product: a weekday too many, 12am taken for noon, "next monday"
that is today, a refusal whose position lies behind the text, an expression in the wrong unit.
"""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents_app.errors import TriggerParseError
from agents_app.triggers import (
    ACCEPTED,
    GAPS,
    OVERLAP_HOURS,
    Trigger,
    When,
    next_fire,
    parse_trigger,
    parse_when,
    upcoming,
)
from tests.agents_app.triggers import oracle
from tests.agents_app.triggers.lines import lines
from tests.agents_app.triggers.phrases import (
    FULL_WEEKDAYS,
    ORDINALS,
    UNITS,
    OnDate,
    Phrase,
    phrases,
    spans,
)

repeatable = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
# `localtime` is the zone of this machine and `Factory` is a placeholder.
ZONES = tuple(sorted(available_timezones() - {"localtime", "Factory"}))
zones = st.sampled_from(ZONES).map(ZoneInfo)
policies = st.tuples(st.sampled_from(GAPS), st.sampled_from(OVERLAP_HOURS))
BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2027, 3, 28, 1, tzinfo=UTC)
# The first 02:30 of that day is over, the second is to come.
TWICE = datetime(2027, 10, 31, 0, 45, tzinfo=UTC)
HALF_PAST_TWO = Phrase("today at 02:30", OnDate(lambda today: today, time(2, 30)), once=True)


@st.composite
def instants(draw: st.DrawFn, zone: ZoneInfo) -> datetime:
    """Anywhere, or in the days before a clock change."""
    at = draw(st.datetimes(datetime(1970, 1, 2), datetime(2099, 1, 1), timezones=st.just(UTC)))
    change = oracle.next_change(at, zone, at + timedelta(days=400))
    if change is None or draw(st.booleans()):
        return at
    return change - timedelta(seconds=draw(st.integers(0, 2 * 86400)))


zones_and_instants = zones.flatmap(lambda zone: st.tuples(st.just(zone), instants(zone)))


@settings(repeatable, max_examples=400)
@given(phrases, zones_and_instants, policies)
@example(HALF_PAST_TWO, (BERLIN, TWICE), ("shift", "both"))
@example(HALF_PAST_TWO, (BERLIN, TWICE), ("shift", "first"))
def test_a_phrase_fires_when_it_says(phrase, moment, chosen):
    zone, now = moment
    expected = phrase.meaning.first(now, zone, *chosen)
    try:
        when = parse_when(phrase.text, now, zone, *chosen)
    except TriggerParseError:
        assert expected is None
    else:
        assert when.once == phrase.once
        assert next_fire(when.trigger, now, when.zone, *chosen) == expected


@settings(repeatable, max_examples=200)
@given(phrases, zones, zones_and_instants)
def test_a_zone_at_the_end_is_the_zone_of_the_phrase(phrase, zone, moment):
    named, now = moment
    try:
        plain = parse_when(phrase.text, now, named)
    except TriggerParseError:
        return
    when = parse_when(f"{phrase.text} {named.key.upper()}", now, zone)
    assert when.names_zone
    # Of names that differ in nothing but their case one stands for all.
    assert when.zone.key.upper() == named.key.upper()
    assert when.trigger == plain.trigger


def check_kept(trigger: Trigger) -> None:
    again = parse_trigger(trigger.expression)
    assert again == trigger
    assert again.expression == trigger.expression
    assert again.text == trigger.expression


@settings(repeatable, max_examples=300)
@given(phrases, zones_and_instants, st.timedeltas(timedelta(0), timedelta(microseconds=999_999)))
def test_the_expression_of_a_phrase_parses_to_the_same_trigger(phrase, moment, fraction):
    zone, now = moment
    try:
        check_kept(parse_when(phrase.text, now + fraction, zone).trigger)
    except TriggerParseError:
        assert phrase.meaning.first(now + fraction, zone, "shift", "first") is None


@settings(repeatable, max_examples=200)
@given(spans)
def test_the_expression_of_elapsed_time_parses_to_the_same_trigger(span):
    number, unit = span
    trigger = parse_trigger(f"every {number} {unit}s")
    assert next_fire(trigger, SPRING, BERLIN) == SPRING + number * UNITS[unit]
    check_kept(trigger)


@settings(repeatable, max_examples=200)
@given(lines())
def test_the_expression_of_a_cron_line_parses_to_the_same_trigger(line):
    check_kept(parse_trigger(line.text))


@settings(repeatable, max_examples=200)
@given(st.integers(1, 10**13), st.sampled_from(["s", "m", "h", "d"]), st.integers(0, 6))
def test_the_expression_of_a_duration_parses_to_the_same_trigger(number, unit, digits):
    text = f"{number / 10**digits:.{digits}f}{unit}"
    try:
        trigger = parse_trigger(text)
    except TriggerParseError:
        return  # too long, or less than a microsecond
    check_kept(trigger)


KEYWORDS = """
in at on today tomorrow next every hourly daily weekly month weekday a an the last and , noon
midnight am pm 9am 5 12:30 17:00 25:00 0 31 1.5 -5 99999999999999999999 15m 1.5h * */5 1-5 L 5#2
@daily @never 2030-06-01 2030-02-30T12:00 2000-01-01T00:00:00Z 0001-01-01 9999-12-31T23:59
9999-12-31T23:59:59.999999-12:00 UTC Asia/Tokyo asia/tokio Europe/ / \u00bd \u0665 \ud800 \x00
"""
UNIT_WORDS = (*UNITS, *(f"{unit}s" for unit in UNITS))
words = st.sampled_from((*KEYWORDS.split(), *FULL_WEEKDAYS, *ORDINALS.values(), *UNIT_WORDS))
texts = st.one_of(
    st.text(st.characters()),
    st.lists(words, max_size=8).map(" ".join),
    st.lists(words | st.text(st.characters(), max_size=4), max_size=8).map("".join),
)
any_instant = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


def check_error(error: TriggerParseError, text: str) -> None:
    assert error.text == text
    assert error.accepted == ACCEPTED
    assert error.position is None or 0 <= error.position <= len(text)
    assert str(error).isprintable()


def check_when(when: When, now: datetime, allow_past: bool) -> None:
    fires = upcoming(when.trigger, now, when.zone, 3)
    assert fires == sorted(set(fires))
    assert fires or allow_past
    assert all(fire > now for fire in fires)
    assert len(fires) <= 1 or not when.once


@settings(repeatable, max_examples=600)
@given(texts, any_instant, zones, st.booleans())
@example("every day", datetime(9999, 12, 30, tzinfo=UTC), ZoneInfo("Pacific/Kiritimati"), False)
@example("at 23:59", datetime(9999, 12, 30, tzinfo=UTC), ZoneInfo("Pacific/Kiritimati"), False)
@example("every day", datetime(1, 1, 2, tzinfo=UTC), ZoneInfo("UTC"), False)
@example("tomorrow", datetime(1, 1, 2, tzinfo=UTC), ZoneInfo("America/New_York"), True)
@example("in 99999999999999999999 days", datetime(2026, 1, 1, tzinfo=UTC), BERLIN, True)
@example("every 999999 weeks", datetime(9000, 1, 1, tzinfo=UTC), ZoneInfo("UTC"), True)
def test_a_text_is_either_parsed_or_refused_with_the_accepted_forms(text, now, zone, allow_past):
    try:
        when = parse_when(text, now, zone, allow_past=allow_past)
    except TriggerParseError as error:
        check_error(error, text)
    else:
        check_when(when, now, allow_past)
        check_kept(when.trigger)


@settings(repeatable, max_examples=300)
@given(texts)
def test_a_text_that_needs_no_clock_means_the_same_with_one(text):
    try:
        trigger = parse_trigger(text)
    except TriggerParseError as error:
        check_error(error, text)
    else:
        assert parse_when(text, SPRING, BERLIN, allow_past=True).trigger == trigger
