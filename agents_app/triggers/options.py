"""Converts options of the command line to the text of a schedule."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agents_app.clock import local
from agents_app.errors import Refused, TriggerParseError
from agents_app.triggers.cron import CronTrigger
from agents_app.triggers.duration import parse_duration
from agents_app.triggers.interval import IntervalTrigger
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.when import When, parse_when

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
_UNITS = ((timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"), (SECOND, "second"))
_DATE = re.compile(r"[0-9]{4}-")
WAYS = "--at, --in, --every, --cron, or a text such as 'every monday at 09:00'"


def text_of(ways: Mapping[str, str], now: datetime, zone: ZoneInfo) -> str:
    """The text of a schedule; `ways` has the value of each option, and the text under `text`."""
    given = {name: value for name, value in ways.items() if value}
    if not given:
        raise Refused(f"no schedule given: use {WAYS}")
    if len(given) > 1:
        both = " and ".join("a text" if name == "text" else f"--{name}" for name in given)
        raise Refused(f"{both} cannot be combined: use one of {WAYS}")
    [(name, value)] = given.items()
    text = _TEXTS[name](value, now, zone)
    _refuse_past(text, now, zone)
    return text


def moment_of(option: str, value: str, now: datetime, zone: ZoneInfo) -> datetime:
    """One instant, in the future or in the past."""
    trigger = _read(_moment(option, value, now, zone), now, zone).trigger
    assert isinstance(trigger, OnceTrigger)
    return trigger.at


def past_moment_of(option: str, value: str, now: datetime, zone: ZoneInfo) -> datetime:
    """An instant in the past: `9:00` is the last one, and `2 hours ago` is allowed."""
    words = value.lower().split()
    if words[-1:] == ["ago"]:
        return now - (moment_of(option, f"in {' '.join(words[:-1])}", now, zone) - now)
    if words[:1] == ["yesterday"]:
        return moment_of(option, " ".join(["tomorrow", *words[1:]]), now - 2 * DAY, zone)
    bare_time = _reads(f"at {value.removeprefix('at ')}", now, zone) and not _DATE.match(value)
    return moment_of(option, value, now - DAY if bare_time else now, zone)


# --- each option ----------------------------------------------------------------------------


def _at(value: str, now: datetime, zone: ZoneInfo) -> str:
    return _moment("--at", value, now, zone)


def _moment(option: str, value: str, now: datetime, zone: ZoneInfo) -> str:
    """The phrase of a time: with "at" before `17:00`, "on" before `2030-06-01`."""
    likely = [f"at {value}", f"on {value}", value]
    wrong = likely[0] if value[:1].isdigit() else value
    text = next((text for text in likely if _reads(text, now, zone)), wrong)
    if isinstance(_read(text, now, zone).trigger, OnceTrigger):
        return text
    raise Refused(f"{option} {value!r}: this is a recurring schedule; give a single time")


def _in(value: str, now: datetime, zone: ZoneInfo) -> str:
    text = f"in {value}"
    return text if _reads(text, now, zone) else f"in {_spelled(_whole_seconds('--in', value))}"


def _every(value: str, now: datetime, zone: ZoneInfo) -> str:
    """A duration is elapsed time since the creation, like the phrase; cron fields are allowed."""
    if value[:1] in ("*", "?", "@") or (value[:1].isdigit() and len(value.split()) > 2):
        return value
    text = f"every {value}"
    if _reads(text, now, zone) or not value[:1].isdigit():
        return text
    return IntervalTrigger(text, _whole_seconds("--every", value), anchor="start").expression


def _cron(value: str, now: datetime, zone: ZoneInfo) -> str:
    if not isinstance(_read(value, now, zone).trigger, CronTrigger) or value[:1].isalpha():
        raise Refused(f"--cron {value!r}: write five fields, such as '0 9 * * 1-5', or @daily")
    return value


def _plain(value: str, now: datetime, zone: ZoneInfo) -> str:
    _read(value, now, zone)
    return value


_TEXTS: dict[str, Callable[[str, datetime, ZoneInfo], str]] = {
    "at": _at,
    "in": _in,
    "every": _every,
    "cron": _cron,
    "text": _plain,
}


# --- reading --------------------------------------------------------------------------------


def _read(text: str, now: datetime, zone: ZoneInfo) -> When:
    try:
        return parse_when(text, now, zone, allow_past=True)
    except TriggerParseError as error:
        raise with_accepted(error) from None


def _reads(text: str, now: datetime, zone: ZoneInfo) -> bool:
    try:
        parse_when(text, now, zone, allow_past=True)
    except TriggerParseError:
        return False
    return True


def with_accepted(error: TriggerParseError) -> Refused:
    """The error with all accepted forms, for a terminal."""
    forms = "".join(f"\n  {line}" for line in error.accepted.splitlines())
    return Refused(f"{error}\nAccepted:{forms}" if forms else str(error))


def _whole_seconds(option: str, value: str) -> timedelta:
    try:
        span = parse_duration(value)
    except TriggerParseError as error:
        raise Refused(f"{option}: {error}") from None
    if span % SECOND:
        raise Refused(f"{option} {value!r}: give whole seconds")
    return span


def _spelled(span: timedelta) -> str:
    """A duration in the words of a phrase, which has no decimals."""
    size, unit = next((size, unit) for size, unit in _UNITS if not span % size)
    return f"{span // size} {unit}s"


def _refuse_past(text: str, now: datetime, zone: ZoneInfo) -> None:
    when = _read(text, now, zone)
    if isinstance(when.trigger, OnceTrigger) and when.trigger.at <= now:
        was = local(when.trigger.at.astimezone(UTC), when.zone)
        raise Refused(
            f"Schedule time is in the past: {text!r} was {was}; give a time in the future"
        )
