"""Parses the text of a schedule of any kind: phrase, duration, cron expression or date."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agents_app.errors import TriggerParseError
from agents_app.triggers.accepted import ACCEPTED, EXAMPLES
from agents_app.triggers.boot import BootTrigger, read_boot
from agents_app.triggers.cron import parse_cron
from agents_app.triggers.dst import Gap, OverlapHour
from agents_app.triggers.duration import parse_duration
from agents_app.triggers.fires import Clockless, Trigger, next_fire
from agents_app.triggers.interval import IntervalTrigger
from agents_app.triggers.iso_time import is_date
from agents_app.triggers.moments import IN_THE_PAST, Clock, Moment, NoInstantError
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.phrase import Reading, read_phrase
from agents_app.triggers.untimed import UntimedTrigger, read_untimed
from agents_app.triggers.words import MAX_LENGTH, excerpt, split_words
from agents_app.triggers.zones import split_zone

SHORTEST_INTERVAL = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class When:
    """A parsed text: its trigger and its time zone."""

    text: str
    trigger: Trigger
    zone: ZoneInfo
    names_zone: bool

    @property
    def once(self) -> bool:
        return isinstance(self.trigger, OnceTrigger)


@lru_cache(maxsize=4096)
def parse_trigger(text: str) -> Trigger:
    """Parse a text that means the same at any time and in any zone, such as an `expression`."""
    with _listing_accepted_forms(text):
        reading, named_zone = _read(text)
        if named_zone is not None:
            reason = (
                f"leave out {named_zone.key}: the zone has a named_zone of its own beside this text"
            )
            raise TriggerParseError(f'cannot read "{excerpt(text)}" here: {reason}', text=text)
        if isinstance(reading, Moment):
            reason = "its meaning depends on the current time; write an instant"
            hint = '(at 2030-06-01T12:00:00Z) or a recurring schedule ("every day at 09:00")'
            raise TriggerParseError(f'cannot store "{excerpt(text)}": {reason} {hint}', text=text)
        return reading


def parse_when(
    text: str,
    now: datetime,
    zone: ZoneInfo,
    gap: Gap = "shift",
    overlap_hour: OverlapHour = "first",
    *,
    allow_past: bool = False,
) -> When:
    """Parse any accepted text; a time zone at its end wins over `zone`."""
    with _listing_accepted_forms(text):
        reading, named_zone = _read(text)
        clock = Clock(now, named_zone or zone, gap, overlap_hour)
        trigger = _resolve(text, reading, clock)
        _refuse_too_often(text, trigger)
        if not allow_past:
            _refuse_past(text, trigger, clock)
        return When(text, trigger, clock.zone, names_zone=named_zone is not None)


def check_phrase(text: str) -> None:
    """Raise what `parse_when` would raise about the text alone, without a clock."""
    with _listing_accepted_forms(text):
        _read(text)


def _read(text: str) -> tuple[Reading | Clockless, ZoneInfo | None]:
    _check_text(text)
    rest, named_zone = split_zone(text)
    words = split_words(rest)
    if clockless := read_untimed(rest) or read_boot(rest):
        return clockless, named_zone
    if _looks_like_cron(words):
        return parse_cron(rest), named_zone
    if words[0][0] in "+-.0123456789" and not is_date(words[0]):
        return IntervalTrigger(text, parse_duration(rest)), named_zone
    return read_phrase(rest), named_zone


def _check_text(text: str) -> None:
    if len(text) > MAX_LENGTH:
        reason = f"it has {len(text)} characters; at most {MAX_LENGTH} are allowed"
        raise TriggerParseError(f'cannot read "{excerpt(text)}": {reason}', text=text)
    if not split_words(text):
        raise TriggerParseError(f"enter a schedule, for example {EXAMPLES}", text=text)
    if not text.isascii():
        position = next(i for i, character in enumerate(text) if not character.isascii())
        reason = f'"{excerpt(text[position])}" (character {position + 1}) is not ASCII'
        message = f'cannot read "{excerpt(text)}": {reason}; write for example {EXAMPLES}'
        raise TriggerParseError(message, text=text, position=position)


def _looks_like_cron(words: list[str]) -> bool:
    if words[0][0] == "@" or any(word[0] in "*?" for word in words):
        return True
    # A duration has two words; three or more that begin with a number are a cron expression.
    return words[0][0].isdigit() and len(words) > 2 and not is_date(words[0])


def _resolve(text: str, reading: Reading | Clockless, clock: Clock) -> Trigger:
    if not isinstance(reading, Moment):
        return reading
    try:
        return OnceTrigger(text, reading.instant(clock))
    except NoInstantError as why:
        raise _no_instant(text, str(why)) from None


def _refuse_too_often(text: str, trigger: Trigger) -> None:
    """`parse_trigger` still reads shorter intervals, which earlier versions have stored."""
    if isinstance(trigger, IntervalTrigger) and trigger.every < SHORTEST_INTERVAL:
        raise _no_instant(text, "is less than one second; write at least 1s")


def _refuse_past(text: str, trigger: Trigger, clock: Clock) -> None:
    if isinstance(trigger, UntimedTrigger):
        raise _no_instant(text, f"has no time: {trigger.refusal}")
    if isinstance(trigger, BootTrigger):
        return
    if next_fire(trigger, clock.now, clock.zone, clock.gap, clock.overlap_hour) is None:
        never = "can never fire before the year 9999; change the schedule"
        raise _no_instant(text, IN_THE_PAST if isinstance(trigger, OnceTrigger) else never)


def _no_instant(text: str, reason: str) -> TriggerParseError:
    return TriggerParseError(f'"{excerpt(text)}" {reason}', text=text, position=0)


@contextmanager
def _listing_accepted_forms(text: str) -> Iterator[None]:
    """Add the whole text and all accepted forms to errors about a part of the text."""
    try:
        yield
    except TriggerParseError as error:
        error.text, error.accepted = text, ACCEPTED
        raise
