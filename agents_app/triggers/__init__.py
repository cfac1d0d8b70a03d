"""The one door to triggers: text to trigger to fires; pure, so every function is told the time."""

from functools import lru_cache

from agents_app.errors import TriggerParseError
from agents_app.triggers.cron import CronTrigger, parse_cron, split_words
from agents_app.triggers.dst import GAPS, OVERLAP_HOURS, Gap, OverlapHour
from agents_app.triggers.duration import parse_duration
from agents_app.triggers.fires import (
    Trigger,
    fires_between,
    last_fire_between,
    next_fire,
    upcoming,
)
from agents_app.triggers.interval import (
    IntervalTrigger,
    calculate_next_trigger,
    is_schedule_due,
    parse_interval,
    parse_interval_trigger,
)
from agents_app.triggers.zones import zone

__all__ = [
    "GAPS",
    "OVERLAP_HOURS",
    "CronTrigger",
    "Gap",
    "IntervalTrigger",
    "OverlapHour",
    "Trigger",
    "calculate_next_trigger",
    "fires_between",
    "is_schedule_due",
    "last_fire_between",
    "next_fire",
    "parse_cron",
    "parse_duration",
    "parse_interval",
    "parse_interval_trigger",
    "parse_trigger",
    "upcoming",
    "zone",
]

_ACCEPTED = 'a cron expression ("0 9 * * 1-5"), a macro ("@daily") or a duration ("15m", "1.5h")'


@lru_cache(maxsize=4096)
def parse_trigger(text: str) -> Trigger:
    words = split_words(text)
    if not words:
        raise TriggerParseError(f"the schedule is empty: write {_ACCEPTED}", text=text)
    # A duration is a number and a unit; three words or more can only be meant as cron.
    if len(words) > 2 or words[0].startswith("@"):
        return parse_cron(text)
    if words[0][0] in "+-.0123456789":
        return IntervalTrigger(text, parse_duration(text))
    raise TriggerParseError(f'cannot read "{text[:80]}": write {_ACCEPTED}', text=text)
