"""Fires as Debian's cron has them, compared with cronsim for 30 days around clock changes."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.formats.old_cron import (
    OldCronError,
    clock_change_settings,
    parse_old_cron,
    rewrite,
)
from agents_app.triggers import fires_between, parse_cron

MONTH = timedelta(days=30)
# 30 days around each change of the clocks, and one month without. No zone that changes by half an
# hour: cronsim goes on by whole hours, and misses some.
STARTS = {
    "UTC": [datetime(2026, 11, 18, 9, 30, tzinfo=UTC)],
    "Europe/Berlin": [
        datetime(2027, 3, 14, 0, 0, tzinfo=UTC),
        datetime(2026, 10, 11, 0, 0, tzinfo=UTC),
    ],
    "America/New_York": [
        datetime(2027, 3, 1, 0, 0, tzinfo=UTC),
        datetime(2026, 10, 20, 0, 0, tzinfo=UTC),
    ],
}
PLACES = [(zone, start) for zone, starts in STARTS.items() for start in starts]
EXPRESSIONS = [
    "*/20 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0,30 2 * * *",
    "15 1-3 * * *",
    "*/20 2 * * *",
    "5 */6 * * *",
    "0 9 * * 1-5",
    "0 9 * * mon,wed,fri",
    "0 0 1,15 * 5",
    "0 0 13 * 5",
    "0 0 1-7 * */7",
    "0 0 8-21 * */7",
    "0 0 29-31 * */7",
    "0 0 */10 * 1",
    "0 0 */2 * */2",
    "0 0 */2 * 0-6",
    "0 0 1-31 * */3",
    "0 0 5,* * 1",
    "0 0 * * 7",
    "0 0 */1 * 1",
    "*/90 3 * * *",
    "0 3 */40 * *",
    "59 23 31 12 *",
    "0 12 1-7 jan-mar,oct sun",
]


def oracle(text: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    fires = (fire.astimezone(UTC) for fire in CronSim(text, start.astimezone(ZoneInfo(zone))))
    return list(takewhile(lambda fire: fire <= end, fires))


def read_fires(text: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    cron = parse_old_cron(text, star_prefix_means_both=True)
    return list(takewhile(lambda fire: fire <= end, cron.fires(start, ZoneInfo(zone))))


def drover_fires(text: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """The fires of the rewritten expression, without those at which the script ends at once."""
    cron = parse_old_cron(text, star_prefix_means_both=True)
    new = rewrite(cron, text)
    policies = clock_change_settings(cron, new.expression)
    area = ZoneInfo(zone)
    fires = fires_between(
        parse_cron(new.expression),
        start,
        end,
        area,
        50_000,
        policies.get("gap", "shift"),  # type: ignore[arg-type]
        policies.get("overlap_hour", "first"),  # type: ignore[arg-type]
    )
    only = new.only_weekdays or frozenset(range(7))
    return [fire for fire in fires if fire.astimezone(area).isoweekday() % 7 in only]


@pytest.mark.parametrize(("zone", "start"), PLACES)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_cron_and_drover_fire_as_the_oracle_does(text, zone, start):
    end = start + MONTH
    expected = oracle(text, zone, start, end)
    assert read_fires(text, zone, start, end) == expected
    assert drover_fires(text, zone, start, end) == expected


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    # Not 5-5/2, which cronsim reads as 5-59/2.
    pairs = st.tuples(number, number).filter(lambda pair: pair[0] < pair[1])
    span = pairs.map(lambda pair: f"{pair[0]}-{pair[1]}")
    step = st.integers(1, high)
    term = st.one_of(
        st.just("*"),
        number.map(str),
        span,
        step.map(lambda size: f"*/{size}"),
        st.tuples(span, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )
    return st.lists(term, min_size=1, max_size=2).map(",".join)


CRONS = st.tuples(_field(0, 59), _field(0, 23), _field(1, 31), _field(1, 12), _field(0, 7))


CHANGE_DAYS = [
    ("Europe/Berlin", datetime(2027, 3, 27, 20, 0, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 24, 20, 0, tzinfo=UTC)),
    ("America/New_York", datetime(2027, 3, 14, 3, 0, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 2, 0, tzinfo=UTC)),
]


@settings(max_examples=60, deadline=None)
@given(CRONS.map(" ".join), st.sampled_from(CHANGE_DAYS))
def test_any_expression_fires_around_a_clock_change_as_the_oracle_does(text, place):
    zone, start = place
    end = start + timedelta(days=2)
    try:
        expected = oracle(text, zone, start, end)
    except CronSimError:
        expected = []  # 30 February: cronsim refuses it, and cron never fires
    assert read_fires(text, zone, start, end) == expected
    if expected:
        assert drover_fires(text, zone, start, end) == expected


@pytest.mark.parametrize(
    ("text", "expression", "only"),
    [
        ("0 9 * * 1-5", "0 9 * * 1-5", set()),
        ("0 0 1-7 * */7", "0 0 * * 0#1", set()),
        ("0 0 8-21 * */7", "0 0 * * 0#2,0#3", set()),
        ("0 0 */10 * 1", "0 0 */10 * *", {1}),
        ("0 0 5,* * 1", "0 0 * * *", set()),
        ("*/90 3 * * *", "0 3 * * *", set()),
        ("@weekly", "0 0 * * 0", set()),
        ("0 8 1,15 * 5", "0 8 1,15 * 5", set()),
    ],
)
def test_day_fields_that_mean_and_are_rewritten(text, expression, only):
    new = rewrite(parse_old_cron(text, star_prefix_means_both=True), text)
    assert (new.expression, set(new.only_weekdays)) == (expression, only)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 2 */2"])
def test_what_can_never_fire_is_known_at_once(text):
    cron = parse_old_cron(text, star_prefix_means_both=True)
    assert cron.never_fires
    assert list(cron.fires(datetime(2026, 11, 1, tzinfo=UTC), ZoneInfo("UTC"))) == []


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 * *", "0 0 31 2,3 *", "0 0 31 2 1"])
def test_what_may_fire_is_not_given_up(text):
    cron = parse_old_cron(text, star_prefix_means_both=True)
    assert next(cron.fires(datetime(2026, 11, 1, tzinfo=UTC), ZoneInfo("UTC")), None)


def test_posix_takes_either_day_unless_one_is_a_plain_star():
    start = datetime(2026, 11, 1, tzinfo=UTC)
    posix = parse_old_cron("0 0 */10 * 1", star_prefix_means_both=False)
    days = [fire.day for fire in islice(posix.fires(start, ZoneInfo("UTC")), 6)]
    assert days == [2, 9, 11, 16, 21, 23]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day-of-month"),
        ("* * * foo *", "month"),
        ("* * * * 8", "day-of-week"),
        ("5/10 * * * *", "minute"),
        ("50-10 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("*/x * * * *", "minute"),
        ("*/ * * * *", "minute"),
        (", * * * *", "minute"),
        ("99999999999999999999 * * * *", "minute"),
        ("* * * *", "fields"),
        ("", "fields"),
    ],
)
def test_what_cron_refuses_is_refused(text, field):
    with pytest.raises(OldCronError) as error:
        parse_old_cron(text, star_prefix_means_both=True)
    assert error.value.field == field
