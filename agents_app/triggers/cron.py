"""Parses a cron expression to a CronTrigger."""

import calendar
import re
from dataclasses import dataclass, field
from functools import lru_cache

from agents_app.errors import TriggerParseError
from agents_app.triggers.cron_field import DAY_OF_MONTH, FIELDS, BadFieldError, Values, parse_field
from agents_app.triggers.words import MAX_LENGTH, WHITESPACE, WORD, excerpt

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """`branches` are simple expressions; the trigger fires when any of them matches.

    The spelling is not compared: `0 9 * * MON` equals `0 9 * * 1`.
    """

    text: str = field(compare=False)
    expression: str = field(compare=False)
    is_shorthand: bool = field(compare=False)
    branches: tuple[str, ...]
    follows_real_clock: bool


# A schedule is parsed several times: by its reader, for each preview, and for each fire.
@lru_cache(maxsize=16384)
def parse_cron(text: str) -> CronTrigger:
    expression = _expand_macro(text)
    words = list(WORD.finditer(expression))
    if len(words) != len(FIELDS):
        raise _error(text, _count_reason(len(words)), "fields")
    fields = [_read_field(text, index, word) for index, word in enumerate(words)]
    _refuse_impossible_date(text, fields)
    return CronTrigger(
        text=text,
        expression=expression,
        is_shorthand=text.strip(WHITESPACE).startswith("@"),
        branches=_branches(fields),
        follows_real_clock=any(word[0].startswith("*") for word in words[:2]),
    )


def _expand_macro(text: str) -> str:
    stripped = text.strip(WHITESPACE)
    if not stripped:
        raise _error(text, 'is empty: write five fields ("0 9 * * *") or a macro such as "@daily"')
    if len(stripped) > MAX_LENGTH:
        raise _error(text, f"is longer than {MAX_LENGTH} characters")
    if not stripped.startswith("@"):
        return stripped
    expression = MACROS.get(stripped.lower())
    if expression is None:
        raise _error(text, f"is not a known macro: use one of {', '.join(MACROS)}")
    return expression


def _count_reason(count: int) -> str:
    names = ", ".join(kind.name for kind in FIELDS)
    no_seconds = "; there is no field for seconds or years" if count > len(FIELDS) else ""
    return f"expected 5 fields ({names}), got {count}{no_seconds}"


def _read_field(text: str, index: int, word: re.Match[str]) -> Values:
    kind = FIELDS[index]
    try:
        return parse_field(kind, word[0])
    except BadFieldError as why:
        position = len(text) - len(text.lstrip(WHITESPACE)) + word.start()
        reason = f'{kind.name} "{excerpt(word[0])}" {why}; for example {kind.example}'
        raise _error(text, reason, kind.name, position) from None


def _refuse_impossible_date(text: str, fields: list[Values]) -> None:
    _, _, days, months, weekdays = fields
    if days.last_day or days.unrestricted or not weekdays.unrestricted:
        return
    # 2028 is a leap year: 29 February is a possible date.
    if min(days.plain) > max(calendar.monthrange(2028, month)[1] for month in months.plain):
        reason = "can never fire: its months do not have this day-of-month"
        raise _error(text, reason, DAY_OF_MONTH)


def _error(
    text: str, reason: str, kind: str | None = None, position: int | None = None
) -> TriggerParseError:
    message = f'cron expression "{excerpt(text)}": {reason}'
    return TriggerParseError(message, text=text, field=kind, position=position)


def _branches(fields: list[Values]) -> tuple[str, ...]:
    """Split so that croniter gets neither an OR of days nor a mix of plain and nth weekdays.

    croniter combines day of month and nth weekday with AND, and refuses `1#2,5`.
    """
    minute, hour, days, month, weekdays = fields
    by_date = [] if days.unrestricted else [(_listed(days), "*")]
    by_weekday = [] if weekdays.unrestricted else [("*", w) for w in _weekday_parts(weekdays)]
    pairs = by_date + by_weekday or [("*", "*")]
    return tuple(
        f"{_listed(minute)} {_listed(hour)} {day} {_listed(month)} {weekday}"
        for day, weekday in pairs
    )


def _listed(values: Values) -> str:
    if values.unrestricted:
        return "*"
    # Written out one by one, because croniter reads the range "5-5" as every value.
    words = [str(value) for value in sorted(values.plain)]
    return ",".join(words + ["l"] * values.last_day)


def _weekday_parts(weekdays: Values) -> list[str]:
    nth = [f"{day}#{number}" for day, number in sorted(weekdays.nth_weekdays)]
    last = [f"l{day}" for day in sorted(weekdays.last_weekdays)]
    return [part for part in (_listed(weekdays), ",".join(nth + last)) if part]
