"""reference/api.md from the OpenAPI document."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gateway_app.api import API
from tests.docs.generate.markdown import code, page, table

Document = dict[str, Any]
_INTRODUCTION = """
The control API is below `/v1`. A running installation serves the OpenAPI 3 document at
`/v1/openapi.json` and a page to try it at `/v1/docs`; the document of this version is
[openapi.json](openapi.json). [Use the API](../guides/api.md) explains
tokens, pages, idempotency keys, errors and streams. [Signals](signals.md) are listed on their own
page.
"""


def document() -> Document:
    """As clients read it: through JSON."""
    read: Document = json.loads(json.dumps(API.get_openapi_schema(), default=str))
    return read


def operations(found: Document) -> Iterator[tuple[str, str, Document]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def render() -> str:
    found = document()
    groups: dict[str, list[str]] = defaultdict(list)
    for path, method, operation in operations(found):
        group = path.split("/")[2]
        if group != "signals":
            groups[group].append(_operation(path, method, operation, found))
    parts = [f"## {name.capitalize()}\n\n" + "\n\n".join(groups[name]) for name in sorted(groups)]
    return page("API", "the OpenAPI document of gateway_app/api", _INTRODUCTION, *parts)


def _operation(path: str, method: str, operation: Document, found: Document) -> str:
    rows = [*_parameters(operation), *_body(operation, found)]
    parts = (
        f"### `{method} {path}`",
        operation.get("summary", ""),
        operation.get("description", ""),
        table(("field", "in", "type", "meaning"), rows) if rows else "",
        f"Answers: {', '.join(code(status) for status in sorted(operation['responses']))}.",
    )
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _parameters(operation: Document) -> Iterator[tuple[str, str, str, str]]:
    for each in operation.get("parameters", ()):
        required = "" if each.get("required") else " (optional)"
        schema = each.get("schema", {})
        said = each.get("description") or schema.get("description", "")
        yield code(each["name"]), each["in"] + required, _type(schema), said


def _body(operation: Document, found: Document) -> Iterator[tuple[str, str, str, str]]:
    contents = operation.get("requestBody", {}).get("content", {})
    for content in list(contents.values())[:1]:
        schema = _resolve(content["schema"], found)
        for name, each in schema.get("properties", {}).items():
            required = "" if name in schema.get("required", ()) else " (optional)"
            yield code(name), "body" + required, _type(each), each.get("description", "")


def _resolve(schema: Document, found: Document) -> Document:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        resolved: Document = found["components"]["schemas"][name]
        return resolved
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return _resolve(choices[0], found) if choices else schema


def _type(schema: Document) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return ", ".join(code(each) for each in schema["enum"])
    if choices := schema.get("anyOf"):
        return ", ".join(_type(each) for each in choices if each.get("type") != "null")
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
