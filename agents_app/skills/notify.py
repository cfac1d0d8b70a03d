"""What config.toml says of those who are to be told what happens to runs."""

from typing import Any

from agents_app.skills.specs import NotifySpec
from agents_app.skills.tables import Layer, build, excerpt, file_fields, fold


def read_targets(tables: Any, layer: Layer) -> tuple[NotifySpec, ...]:
    if not isinstance(tables, list):
        layer.complain(("notify",), f"must be a list of tables ([[notify]]), not {excerpt(tables)}")
        return ()
    found: dict[str, NotifySpec] = {}
    for number, table in enumerate(tables):
        at = ("notify", number)
        spec = build(NotifySpec, fold(table, file_fields(NotifySpec), layer, at), layer, at)
        if spec and spec.url in found:
            layer.complain((*at, "url"), "is told already; name all events in one place")
        elif spec:
            found[spec.url] = spec
    return tuple(found.values())
