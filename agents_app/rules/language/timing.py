"""When a rule is due: by its trigger, after a failure, after a time without a look; pure."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.rules.language.rule import Every, Trigger
from agents_app.triggers import CronTrigger, next_fire, parse_cron

FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 60, 3600
# The minute of a cron rule: who comes later than that was down, and makes up for nothing.
AWAY = timedelta(seconds=60)
# Of a date that never comes, such as a 30th of February.
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def next_due(trigger: Trigger, after: datetime, zone: ZoneInfo) -> datetime:
    """Strictly after that; of an interval the end of a whole one that begins then."""
    if isinstance(trigger, Every):
        return after + timedelta(seconds=trigger.seconds)
    return _next_minute(trigger.expression, after, zone)


def due_after_failure(
    trigger: Trigger, planned: datetime, backoff_until: datetime, zone: ZoneInfo
) -> datetime:
    """An interval ends when the backoff does; a cron rule waits for its own next minute."""
    if planned >= backoff_until or isinstance(trigger, Every):
        return max(planned, backoff_until)
    return next_due(trigger, backoff_until - timedelta(seconds=1), zone)


def backoff(failures: int) -> timedelta:
    """1, 2, 4 ... minutes, at most an hour, after so many failures in a row."""
    doubled = FIRST_BACKOFF_SECONDS * 2 ** min(failures - 1, 10)
    return timedelta(seconds=min(doubled, LONGEST_BACKOFF_SECONDS))


def nobody_looked(last: datetime | None, started: datetime | None, now: datetime) -> bool:
    """Since the last look Drover was started, or down, or the clock was set back."""
    if last is None or (started is not None and last < started):
        return True
    return not now - AWAY <= last <= now


@lru_cache(maxsize=1024)
def _next_minute(expression: str, after: datetime, zone: ZoneInfo) -> datetime:
    """Of many rules that are due at one look most have the same expression."""
    return next_fire(_cron(expression), after, zone) or NEVER


@lru_cache(maxsize=4096)
def _cron(expression: str) -> CronTrigger:
    return parse_cron(expression)
