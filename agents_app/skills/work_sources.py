"""Reads the field `work_source` of an agent or a schedule."""

from dataclasses import asdict, is_dataclass
from typing import Any, get_type_hints

from agents_app.skills.document import KeyPath
from agents_app.skills.fields import did_you_mean
from agents_app.skills.specs import WorkSourceSpec
from agents_app.skills.tables import Layer, build_spec, excerpt, file_fields, normalize_table
from agents_app.work_sources.kinds import KINDS


def read_work_source(value: Any, layer: Layer, at: KeyPath) -> WorkSourceSpec | None:
    """The work source, or None after every error has been reported."""
    if value is None:
        return None
    if not isinstance(value, dict):
        layer.report(at, f"must be a table, not {excerpt(value)}")
        return None
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        types = ", ".join(repr(name) for name in KINDS)
        hint = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        layer.report((*at, "type"), f"must be one of {types}, not {excerpt(kind)}{hint}")
        return None
    return _read_settings(kind, value, layer, at)


def _read_settings(
    kind: str, value: dict[str, Any], layer: Layer, at: KeyPath
) -> WorkSourceSpec | None:
    settings = KINDS[kind].settings
    given = {key: each for key, each in value.items() if key != "type"}
    table = normalize_table(given, file_fields(settings), layer, at)
    hints = get_type_hints(settings)
    nested = {
        name: normalize_table(each, file_fields(hints[name]), layer, (*at, name))
        for name, each in table.items()
        if is_dataclass(hints[name])
    }
    built: Any = build_spec(settings, {**table, **nested}, layer, at)
    return WorkSourceSpec(type=kind, settings=asdict(built)) if built is not None else None
