"""Describes recurring triggers in English, so that users can check the meaning of their text."""

from collections.abc import Sequence
from datetime import timedelta

from agents_app.triggers.cron import CronTrigger
from agents_app.triggers.cron_field import FIELDS, Values, parse_field
from agents_app.triggers.interval import IntervalTrigger

# More times of day are described by a rule; of more values only the first are named.
MAX_NAMED_TIMES = 6
MAX_NAMED_VALUES = 8
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_SUFFIXES = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def describe_cron(trigger: CronTrigger) -> str:
    """`30 7 * * 1-5` is "at 07:30, Monday to Friday"; a phrase is its own description."""
    if trigger.expression[0].isalpha():
        return trigger.expression
    words = trigger.expression.split()
    minute, hour, days, months, weekdays = map(parse_field, FIELDS, words)
    times = _times(minute, hour)
    dates = _dates(days, weekdays) or ("" if times.startswith("every") else "every day")
    return ", ".join(filter(None, (times, dates, _in_months(months))))


def describe_interval(trigger: IntervalTrigger) -> str:
    """`1.5h` is "every 1 hour and 30 minutes"; "every hour" needs no number."""
    if trigger.every == timedelta(days=1):
        return "every 24 hours"  # "every day" is a time of day
    parts, rest = [], trigger.every
    for seconds, unit in _UNITS:
        count, rest = divmod(rest, timedelta(seconds=seconds))
        if count:
            parts.append(f"{count} {unit}" + ("s" if count > 1 else ""))
    if rest:
        parts.append(f"{rest.microseconds / 1000:g} milliseconds")
    alone = len(parts) == 1
    return f"every {parts[0].removeprefix('1 ') if alone else _joined(parts)}"


# --- times of day ---------------------------------------------------------------------------


def _times(minute: Values, hour: Values) -> str:
    minutes, hours = sorted(minute.plain), sorted(hour.plain)
    if minute.unrestricted or (len(minutes) > 1 and _step(minutes, 60)):
        every = 1 if minute.unrestricted else _step(minutes, 60)
        # 7 minutes do not divide an hour: the count restarts every hour.
        anew = ", anew each hour" if 60 % every else ""
        return f"{_each(every, 'minute')}{anew}{_during(hour)}"
    if len(minutes) * len(hours) <= MAX_NAMED_TIMES:
        return "at " + _joined([_clock(h, m) for h in hours for m in minutes])
    if len(minutes) > 1:
        return f"at {_joined([f':{m:02}' for m in minutes])} of every hour{_during(hour)}"
    return _hourly(hours, minutes[0])


def _hourly(hours: list[int], minute: int) -> str:
    """A time that occurs once in each of many hours."""
    if step := _step(hours, 24):
        return f"{_each(step, 'hour')} at :{minute:02}"
    if _is_run(hours):
        return f"every hour from {_clock(hours[0], minute)} to {_clock(hours[-1], minute)}"
    return "at " + _joined([_clock(hour, minute) for hour in hours])


def _during(hour: Values) -> str:
    hours = sorted(hour.plain)
    if hour.unrestricted:
        return ""
    if _is_run(hours):
        return f" from {_clock(hours[0], 0)} to {_clock(hours[-1], 59)}"
    return f" in the hours {_joined([f'{hour:02}' for hour in hours])}"


def _each(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"


def _step(values: Sequence[int], size: int) -> int:
    """The step if these are all values from 0 to size with a constant step, else 0."""
    if len(values) < 2:
        return 0
    step = values[1] - values[0]
    return step if list(values) == list(range(0, size, step)) else 0


def _is_run(values: Sequence[int]) -> bool:
    return len(values) == values[-1] - values[0] + 1


# --- dates ----------------------------------------------------------------------------------


def _dates(days: Values, weekdays: Values) -> str:
    """The days; cron fires on either if both fields are restricted."""
    by_date = "" if days.unrestricted else _days_of_month(days)
    by_weekday = "" if weekdays.unrestricted else _weekdays(weekdays)
    return " and also ".join(filter(None, (by_date, by_weekday)))


def _days_of_month(days: Values) -> str:
    numbers = sorted(days.plain)
    if len(numbers) > 2 and _is_run(numbers) and not days.last_day:
        return f"from the {_nth(numbers[0])} to the {_nth(numbers[-1])} of the month"
    named = [f"the {_nth(day)}" for day in numbers] + ["the last day"] * days.last_day
    return f"on {_joined(named)} of the month"


def _weekdays(weekdays: Values) -> str:
    plain = sorted(weekdays.plain)
    parts = []
    if len(plain) > 2 and _is_run(plain):
        parts.append(f"{_DAYS[plain[0]]} to {_DAYS[plain[-1]]}")
    elif plain:
        # Weeks begin on Monday.
        parts.append("on " + _joined([_DAYS[day] for day in sorted(plain, key=lambda d: d or 7)]))
    rare = [f"the {_nth(n)} {_DAYS[day]}" for day, n in sorted(weekdays.nth_weekdays)]
    rare += [f"the last {_DAYS[day]}" for day in sorted(weekdays.last_weekdays)]
    if rare:
        parts.append(f"on {_joined(rare)} of the month")
    return " and ".join(parts)


def _in_months(months: Values) -> str:
    numbers = sorted(months.plain)
    if months.unrestricted:
        return ""
    if len(numbers) > 2 and _is_run(numbers):
        return f"from {_MONTHS[numbers[0] - 1]} to {_MONTHS[numbers[-1] - 1]}"
    return "in " + _joined([_MONTHS[month - 1] for month in numbers])


def _nth(number: int) -> str:
    return f"{number}{_SUFFIXES.get(number, 'th')}"


def _joined(words: Sequence[str]) -> str:
    if len(words) > MAX_NAMED_VALUES:
        words = [*words[: MAX_NAMED_VALUES - 1], f"{len(words) - MAX_NAMED_VALUES + 1} more"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
