"""`schedule:` and `schedules:` of an agent as specs; when they fire is triggers' business."""

from datetime import UTC, datetime
from typing import Any

from agents_app.errors import DroverError, TriggerParseError
from agents_app.skills.document import At
from agents_app.skills.specs import Overlap, ScheduleSpec
from agents_app.skills.tables import Layer, build, excerpt, file_fields, fold
from agents_app.triggers import (
    IntervalTrigger,
    OnceTrigger,
    Trigger,
    parse_cron,
    parse_interval_trigger,
    parse_when,
    zone,
)

DEFAULT_NAME = "default"
MAX_EXPRESSION = 200
MAX_JITTER_PERCENT = 10
_OF_THE_SPEC_ONLY = {"name", "jitter_percent"}
_FIELDS = {
    **{name: f for name, f in file_fields(ScheduleSpec).items() if name not in _OF_THE_SPEC_ONLY},
    **{name: name for name in ("type", "interval", "jitter")},
}
TWO_TIMES = (datetime(2026, 1, 1, 1, 1, tzinfo=UTC), datetime(2026, 1, 9, 23, 2, tzinfo=UTC))
_FIELD_OF_TYPE = {"interval": "interval", "cron": "expression"}


def read_schedules(
    text: Any, tables: Any, timezone: str | None, layer: Layer
) -> tuple[ScheduleSpec, ...]:
    """All that can be read; the rest is among the layer's problems."""
    specs: list[ScheduleSpec | None] = []
    if text is not None and (expression := _checked("", text, ("schedule",), layer)):
        overlap = _usual_overlap(expression)
        specs.append(
            ScheduleSpec(
                name=DEFAULT_NAME, expression=expression, timezone=timezone, overlap=overlap
            )
        )
    if not isinstance(tables, dict):
        layer.complain(("schedules",), f"must be a table of schedules, not {excerpt(tables)}")
        tables = {}
    for name, table in tables.items():
        specs.append(_read_one(name, table, timezone, layer, taken=text is not None))
    return tuple(spec for spec in specs if spec)


def _read_one(
    name: str, table: Any, timezone: str | None, layer: Layer, *, taken: bool
) -> ScheduleSpec | None:
    at: At = ("schedules", name)
    if len(name) > 100 or not name.strip():
        layer.complain(at, "a schedule's name has 1 to 100 characters")
    if taken and name == DEFAULT_NAME:
        layer.complain(at, "this name is taken by 'schedule'; choose another")
    folded = fold(table, _FIELDS, layer, at)
    if not isinstance(table, dict):
        return None
    expression = _expression(folded, at, layer)
    folded.update(_jitter(folded.pop("jitter", 0), expression, at, layer))
    folded.setdefault("timezone", timezone)
    folded.setdefault("overlap", _usual_overlap(expression))
    return build(ScheduleSpec, {"name": name, "expression": expression, **folded}, layer, at)


def _expression(table: dict[str, Any], at: At, layer: Layer) -> str:
    """When it fires, from whichever field the type asks for; empty if that is a problem."""
    kind = table.pop("type", None)
    given = {field: table.pop(field) for field in ("interval", "expression") if field in table}
    if kind is not None and not (isinstance(kind, str) and kind in _FIELD_OF_TYPE):
        layer.complain((*at, "type"), f"must be 'interval' or 'cron', not {excerpt(kind)}")
        return ""
    wanted = _FIELD_OF_TYPE[kind] if kind else next(iter(given), None)
    for other in given.keys() - {wanted}:
        layer.complain((*at, other), f"does not go with {wanted!r}; keep one of them")
    if wanted not in given:
        layer.complain(at, _missing(wanted))
        return ""
    assert wanted is not None
    return _checked(kind or wanted, given[wanted], (*at, wanted), layer)


def _missing(field: str | None) -> str:
    interval, cron = "'interval' (for example 5m)", "'expression' (for example \"0 9 * * 1-5\")"
    return "needs " + {"interval": interval, "expression": cron}.get(
        field or "", f"{interval} or {cron}"
    )


def _checked(kind: str, text: Any, at: At, layer: Layer) -> str:
    """The text if it says when, else empty and a problem."""
    if not isinstance(text, str):
        layer.complain(at, f"must be text such as 15m, not {excerpt(text)}; put it in quotes")
        return ""
    if len(text) > MAX_EXPRESSION:
        layer.complain(at, f"has {len(text)} characters; at most {MAX_EXPRESSION} are read")
        return ""
    parse = {"interval": parse_interval_trigger, "cron": parse_cron}.get(kind, _say_when)
    try:
        parse(text)
        _say_when(text)  # what the row will be read with, whatever the field was
    except DroverError as error:
        layer.complain(at, " ".join(str(error).split()))
        return ""
    return " ".join(text.split())


def _say_when(text: str) -> Trigger:
    """A file is read again and again: what it says must mean the same each time."""
    early, late = (parse_when(text, now, zone("UTC"), allow_past=True).trigger for now in TWO_TIMES)
    if early != late:
        reason = "it means another time whenever the file is read"
        hint = "write a date (on 2030-06-01 at 12:00), or use manage.py schedule create"
        raise TriggerParseError(f'"{text}" cannot stand in a file: {reason}; {hint}', text=text)
    if not isinstance(early, OnceTrigger):
        parse_when(text, TWO_TIMES[-1], zone("UTC"))  # refuses what can never fire
    return early


def _usual_overlap(expression: str) -> Overlap:
    """What fires only once is better late than never."""
    once = bool(expression) and isinstance(_say_when(expression), OnceTrigger)
    return "queue" if once else "skip"


def _jitter(value: Any, expression: str, at: At, layer: Layer) -> dict[str, Any]:
    """A number or `5%` is a part of the interval; a duration is one."""
    percent = _percent(value)
    if percent is None:
        return {"jitter_seconds": value}
    if not 0 <= percent <= MAX_JITTER_PERCENT:
        layer.complain((*at, "jitter"), f"must be 0 to {MAX_JITTER_PERCENT} percent or a duration")
    elif percent and expression and not isinstance(_say_when(expression), IntervalTrigger):
        layer.complain((*at, "jitter"), "a percentage needs an interval; write a duration: 30s")
    return {"jitter_percent": percent}


def _percent(value: Any) -> float | None:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.endswith("%"):
        text = text[:-1].strip()
        return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else -1
    return float(text) if isinstance(text, int | float) and not isinstance(text, bool) else None
