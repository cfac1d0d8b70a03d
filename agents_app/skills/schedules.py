"""Reads the fields `schedule` and `schedules` of an agent."""

from datetime import UTC, datetime
from typing import Any

from agents_app.conf import PROGRAM
from agents_app.errors import DroverError, TriggerParseError
from agents_app.skills.document import KeyPath
from agents_app.skills.fields import did_you_mean
from agents_app.skills.specs import Overlap, ScheduleSpec
from agents_app.skills.tables import Layer, build_spec, excerpt, file_fields, normalize_table
from agents_app.skills.work_sources import read_work_source
from agents_app.triggers import (
    UNTIMED_TYPES,
    IntervalTrigger,
    OnceTrigger,
    Trigger,
    UntimedTrigger,
    parse_cron,
    parse_interval_trigger,
    parse_when,
    zone,
)

DEFAULT_NAME = "default"
MAX_EXPRESSION = 200
MAX_JITTER_PERCENT = 10
_NOT_IN_FILES = {"name", "jitter_percent"}
_FIELDS = {
    **{name: f for name, f in file_fields(ScheduleSpec).items() if name not in _NOT_IN_FILES},
    **{name: name for name in ("type", "interval", "jitter")},
}
TWO_TIMES = (datetime(2026, 1, 1, 1, 1, tzinfo=UTC), datetime(2026, 1, 9, 23, 2, tzinfo=UTC))
_FIELD_OF_TYPE = {"interval": "interval", "cron": "expression"}
_TYPES = (*_FIELD_OF_TYPE, *UNTIMED_TYPES)


def read_schedules(
    text: Any, tables: Any, timezone: str | None, layer: Layer
) -> tuple[ScheduleSpec, ...]:
    """The valid schedules; errors of the others are reported to the layer."""
    specs: list[ScheduleSpec | None] = []
    if text is not None and (expression := _checked("", text, ("schedule",), layer)):
        overlap = _default_overlap(expression)
        specs.append(
            ScheduleSpec(
                name=DEFAULT_NAME, expression=expression, timezone=timezone, overlap=overlap
            )
        )
    if not isinstance(tables, dict):
        layer.report(("schedules",), f"must be a table of schedules, not {excerpt(tables)}")
        tables = {}
    for name, table in tables.items():
        specs.append(_read_one(name, table, timezone, layer, taken=text is not None))
    return tuple(spec for spec in specs if spec)


def _read_one(
    name: str, table: Any, timezone: str | None, layer: Layer, *, taken: bool
) -> ScheduleSpec | None:
    at: KeyPath = ("schedules", name)
    if len(name) > 100 or not name.strip():
        layer.report(at, "a schedule's name has 1 to 100 characters")
    if taken and name == DEFAULT_NAME:
        layer.report(at, "the field 'schedule' already has this name; choose another")
    values = normalize_table(table, _FIELDS, layer, at)
    if not isinstance(table, dict):
        return None
    expression = _expression(values, at, layer)
    values.update(_jitter(values.pop("jitter", 0), expression, at, layer))
    source = read_work_source(values.pop("work_source", None), layer, (*at, "work_source"))
    values.setdefault("timezone", timezone)
    values.setdefault("overlap", _default_overlap(expression))
    values |= {"name": name, "expression": expression, "work_source": source}
    return build_spec(ScheduleSpec, values, layer, at)


def _expression(table: dict[str, Any], at: KeyPath, layer: Layer) -> str:
    """The expression from the field that belongs to the type; empty after an error."""
    kind = table.pop("type", None)
    given = {field: table.pop(field) for field in ("interval", "expression") if field in table}
    if kind is not None and not (isinstance(kind, str) and kind in _TYPES):
        hint = did_you_mean(kind, _TYPES) if isinstance(kind, str) else ""
        types = "'interval', 'cron', 'webhook' or 'chat'"
        layer.report((*at, "type"), f"must be {types}, not {excerpt(kind)}{hint}")
        return ""
    if kind in UNTIMED_TYPES:
        # As in herdctl, such a schedule may have times, which have no effect.
        return UntimedTrigger(kind).expression
    wanted = _FIELD_OF_TYPE[kind] if kind else next(iter(given), None)
    for other in given.keys() - {wanted}:
        layer.report((*at, other), f"cannot be combined with {wanted!r}; keep one of them")
    if wanted not in given:
        layer.report(at, _missing(wanted))
        return ""
    assert wanted is not None
    return _checked(kind or wanted, given[wanted], (*at, wanted), layer)


def _missing(field: str | None) -> str:
    interval, cron = "'interval' (for example 5m)", "'expression' (for example \"0 9 * * 1-5\")"
    return "needs " + {"interval": interval, "expression": cron}.get(
        field or "", f"{interval} or {cron}"
    )


def _checked(kind: str, text: Any, at: KeyPath, layer: Layer) -> str:
    """The text if it is a valid schedule; otherwise empty, and an error is reported."""
    if not isinstance(text, str):
        layer.report(at, f"must be text such as 15m, not {excerpt(text)}; put it in quotes")
        return ""
    if len(text) > MAX_EXPRESSION:
        layer.report(at, f"has {len(text)} characters; at most {MAX_EXPRESSION} are read")
        return ""
    try:
        if kind == "interval":
            parse_interval_trigger(text)
        elif kind == "cron":
            parse_cron(text)
        _parse_fixed(text)  # the row is parsed with this function, whatever the field was
    except DroverError as error:
        layer.report(at, " ".join(str(error).split()))
        return ""
    return " ".join(text.split())


def _parse_fixed(text: str) -> Trigger:
    """Parse a text that means the same time whenever the file is read; raises otherwise."""
    early, late = (parse_when(text, now, zone("UTC"), allow_past=True).trigger for now in TWO_TIMES)
    if early != late:
        reason = "it means a different time each time the file is read"
        hint = f"write a date (on 2030-06-01 at 12:00), or use {PROGRAM} schedule create"
        raise TriggerParseError(f'"{text}" cannot be used in a file: {reason}; {hint}', text=text)
    if not isinstance(early, OnceTrigger):
        parse_when(text, TWO_TIMES[-1], zone("UTC"))  # refuses what can never fire
    return early


def _default_overlap(expression: str) -> Overlap:
    """A one-time schedule is queued, because it has no later fire; others are skipped."""
    once = bool(expression) and isinstance(_trigger(expression), OnceTrigger)
    return "queue" if once else "skip"


def _trigger(expression: str) -> Trigger:
    """The trigger of an expression that was checked."""
    return parse_when(expression, TWO_TIMES[0], zone("UTC"), allow_past=True).trigger


def _jitter(value: Any, expression: str, at: KeyPath, layer: Layer) -> dict[str, Any]:
    """The column for jitter: a number or `5%` is a percentage of the interval."""
    percent = _percent(value)
    if percent is None:
        return {"jitter_seconds": value}
    if not 0 <= percent <= MAX_JITTER_PERCENT:
        layer.report((*at, "jitter"), f"must be 0 to {MAX_JITTER_PERCENT} percent or a duration")
    elif percent and expression and not isinstance(_trigger(expression), IntervalTrigger):
        layer.report((*at, "jitter"), "a percentage needs an interval; write a duration: 30s")
    return {"jitter_percent": percent}


def _percent(value: Any) -> float | None:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.endswith("%"):
        text = text[:-1].strip()
        return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else -1
    return float(text) if isinstance(text, int | float) and not isinstance(text, bool) else None
