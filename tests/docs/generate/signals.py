"""reference/signals.md from the declaration of the signals."""

from typing import Any

from tests.docs.generate.api import document, operations
from tests.docs.generate.markdown import code, page, table

_INTRODUCTION = """
A running agent sends signals: with the command `drover`, which every run has on its `PATH`, or by
`POST /v1/signals/NAME` to `$DROVER_GATEWAY_URL` with `Authorization: Bearer $DROVER_RUN_TOKEN` and
the fields as JSON or as a form. The token is valid while the run is running: afterwards the answer
is 401, and 409 when another attempt has replaced the run. `drover --help` prints the commands and
their exit codes; [Let agents call agents](../guides/calls.md) shows them at work.
"""


def render() -> str:
    found = document()
    parts = [
        _signal(path.rpartition("/")[2], operation, found)
        for path, _, operation in operations(found)
        if path.split("/")[2] == "signals"
    ]
    return page("Signals", "the declaration of the signals", _INTRODUCTION, *parts)


def _signal(name: str, operation: dict[str, Any], found: dict[str, Any]) -> str:
    content = next(iter(operation["requestBody"]["content"].values()))
    schema = found["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    rows = [
        (
            code(field),
            _type(each),
            "yes" if field in required else "",
            str(each.get("description", "")),
        )
        for field, each in schema.get("properties", {}).items()
    ]
    fields = table(("field", "type", "required", "meaning"), rows) if rows else "No fields."
    return f"## {name}\n\n{operation['summary']}.\n\n{fields}"


def _type(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
