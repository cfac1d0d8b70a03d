"""Parses phrases such as `every monday at 09:00` and `in 30 minutes`."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, time, timedelta

from agents_app.triggers.accepted import EXAMPLES
from agents_app.triggers.cron import CronTrigger, parse_cron
from agents_app.triggers.interval import IntervalTrigger
from agents_app.triggers.iso_time import is_date, take_date, take_date_time
from agents_app.triggers.moments import Elapsed, Moment, NextTime, OnDay
from agents_app.triggers.once import OnceTrigger
from agents_app.triggers.phrase_parts import (
    MONDAY,
    WEEKDAYS,
    take_at,
    take_day_of_month,
    take_one,
    take_span,
    take_time,
    take_times,
    take_weekday,
    take_weekdays,
)
from agents_app.triggers.words import WordReader

Reading = CronTrigger | IntervalTrigger | OnceTrigger | Moment

_DAY = timedelta(days=1)
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)
# Words that are ambiguous or not exact enough, and what to write instead.
_INSTEAD = {
    "fortnight": "every 2 weeks",
    "monthly": "every month on the 1st",
    "other": "every 2 days",
    "second": "every 1 second",
    "weekdays": "every weekday",
    "weekend": "every saturday and sunday",
    "year": "@yearly",
    "yearly": "@yearly",
}


def read_phrase(text: str) -> Reading:
    """The trigger of a phrase; a one-time phrase is a Moment until the time is known."""
    reader = WordReader(text)
    read = _FIRST_WORDS.get(reader.word)
    if read is not None:
        reader.skip()
        reading = read(reader)
    elif is_date(reader.word):
        reading = take_date_time(reader)
    else:
        raise reader.error(_instead(reader) or f"write for example {EXAMPLES}")
    reader.expect_end()
    return reading


# --- once -----------------------------------------------------------------------------------


def _in(reader: WordReader) -> Reading:
    return Elapsed(take_one(reader) or take_span(reader))


def _at(reader: WordReader) -> Reading:
    return take_date_time(reader) if is_date(reader.word) else NextTime(take_time(reader))


def _on(reader: WordReader) -> Reading:
    return take_date(reader)


def _today(reader: WordReader) -> Reading:
    if reader.word != "at":
        raise reader.error('expected "at" and a time')
    return OnDay(lambda today: today, take_at(reader))


def _tomorrow(reader: WordReader) -> Reading:
    return OnDay(lambda today: today + _DAY, take_at(reader))


def _next(reader: WordReader) -> Reading:
    weekday = take_weekday(reader)

    def pick(today: date) -> date:
        """The next such weekday after today."""
        return today + _DAY * ((weekday - today.isoweekday() - 1) % 7 + 1)

    return OnDay(pick, take_at(reader))


# --- recurring ------------------------------------------------------------------------------


def _every(reader: WordReader) -> Reading:
    if reader.word in WEEKDAYS:
        return _on_weekdays(reader)
    if reader.word[:1].isdigit():
        return _elapsed(reader, take_span(reader))
    read = _EVERY.get(reader.word)
    if read is None:
        expected = 'expected a number, a weekday, "minute", "hour", "day", "week" or "month"'
        raise reader.error(_instead(reader) or expected)
    reader.skip()
    return read(reader)


def _every_minute(reader: WordReader) -> Reading:
    return _elapsed(reader, _MINUTE)


def _every_hour(reader: WordReader) -> Reading:
    return _elapsed(reader, _HOUR)


def _every_day(reader: WordReader) -> Reading:
    return _cron(reader, take_times(reader))


def _every_weekday(reader: WordReader) -> Reading:
    return _cron(reader, take_times(reader), weekdays="1-5")


def _every_week(reader: WordReader) -> Reading:
    if reader.take("on"):
        return _on_weekdays(reader)
    return _cron(reader, take_times(reader), weekdays=str(MONDAY))


def _on_weekdays(reader: WordReader) -> Reading:
    days = ",".join(str(day) for day in take_weekdays(reader))
    return _cron(reader, take_times(reader), weekdays=days)


def _every_month(reader: WordReader) -> Reading:
    day = take_day_of_month(reader) if reader.take("on") else "1"
    return _cron(reader, take_times(reader), day=day)


def _elapsed(reader: WordReader, every: timedelta) -> Reading:
    return IntervalTrigger(reader.text, every, anchor="start")


def _cron(
    reader: WordReader, times: Sequence[time], *, day: str = "*", weekdays: str = "*"
) -> Reading:
    """One cron expression for all times of the same minute; several of them become branches."""
    hours: defaultdict[int, list[str]] = defaultdict(list)
    for at in times:
        hours[at.minute].append(str(at.hour))
    triggers = [
        parse_cron(f"{minute} {','.join(of_minute)} {day} * {weekdays}")
        for minute, of_minute in hours.items()
    ]
    if len(triggers) == 1:
        return replace(triggers[0], text=reader.text)
    # No single cron expression has these times, so the phrase is stored as the expression.
    phrase = " ".join(reader.text.lower().split())
    branches = tuple(branch for trigger in triggers for branch in trigger.branches)
    return replace(triggers[0], text=reader.text, expression=phrase, branches=branches)


def _instead(reader: WordReader) -> str:
    better = _INSTEAD.get(reader.word)
    return f'write "{better}" instead' if better else ""


_EVERY: dict[str, Callable[[WordReader], Reading]] = {
    "minute": _every_minute,
    "hour": _every_hour,
    "day": _every_day,
    "weekday": _every_weekday,
    "week": _every_week,
    "month": _every_month,
}
_FIRST_WORDS: dict[str, Callable[[WordReader], Reading]] = {
    "in": _in,
    "at": _at,
    "on": _on,
    "today": _today,
    "tomorrow": _tomorrow,
    "next": _next,
    "every": _every,
    "hourly": _every_hour,
    "daily": _every_day,
    "weekly": _every_week,
}
