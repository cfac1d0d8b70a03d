"""When a rule is due: by its trigger, after a failure, and after missed ticks; pure."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.rules.language.rule import Every, Trigger
from agents_app.triggers import CronTrigger, next_fire, parse_cron

FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 60, 3600
# The minute of a cron rule: after a longer gap Drover was down, and nothing is made up for. Clocks
# of hosts that differ by more than this are a mistake that doctor reports.
MAX_TICK_GAP = timedelta(seconds=60)
# The due time of a trigger without a next fire, such as a 30th of February.
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def next_due(trigger: Trigger, after: datetime, zone: ZoneInfo) -> datetime:
    """The first due time strictly after `after`; an interval is counted from `after`."""
    if isinstance(trigger, Every):
        return after + timedelta(seconds=trigger.seconds)
    return _next_minute(trigger.expression, after, zone)


def due_after_failure(
    trigger: Trigger, planned: datetime, backoff_until: datetime, zone: ZoneInfo
) -> datetime:
    """An interval is due when the backoff ends; a cron rule at its next minute after that."""
    if planned >= backoff_until or isinstance(trigger, Every):
        return max(planned, backoff_until)
    return next_due(trigger, backoff_until - timedelta(seconds=1), zone)


def backoff(failures: int) -> timedelta:
    """The wait after `failures` failures in a row: 1, 2, 4 ... minutes, at most an hour."""
    doubled = FIRST_BACKOFF_SECONDS * 2 ** min(failures - 1, 10)
    return timedelta(seconds=min(doubled, LONGEST_BACKOFF_SECONDS))


def ticks_were_missed(last: datetime | None, started: datetime | None, now: datetime) -> bool:
    """Whether since the last tick Drover was down or started, or the clock was set back.

    The last tick may be a little later than `now`, because another beat has a clock that is ahead
    or read its clock later and wrote first. It must not begin every interval again.
    """
    if last is None or (started is not None and last < started):
        return True
    return abs(now - last) > MAX_TICK_GAP


@lru_cache(maxsize=1024)
def _next_minute(expression: str, after: datetime, zone: ZoneInfo) -> datetime:
    """Cached because most of the rules that are due at one tick have the same expression."""
    return next_fire(_cron(expression), after, zone) or NEVER


@lru_cache(maxsize=4096)
def _cron(expression: str) -> CronTrigger:
    return parse_cron(expression)
