"""/v1/signals in the OpenAPI document, derived from the declarations of the signals."""

from typing import Any

from agents_app.signals import SIGNALS, Signal, SignalField

SECURITY = "RunToken"
_PROBLEM_STATUSES = (400, 401, 403, 404, 405, 408, 409, 413, 429, 503)


def describe(document: dict[str, Any], prefix: str) -> None:
    """Add every signal to the document, authenticated with the token of a run."""
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes[SECURITY] = {
        "type": "http",
        "scheme": "bearer",
        "description": "DROVER_RUN_TOKEN of a run; invalid when the run has ended.",
    }
    schemas = document["components"].setdefault("schemas", {})
    for name, signal in SIGNALS.items():
        schema = f"Signal_{name.replace('-', '_')}"
        schemas[schema] = _schema(signal)
        document["paths"][f"{prefix}signals/{name}"] = {"post": _operation(signal, schema)}


def _schema(signal: Signal) -> dict[str, Any]:
    properties = {field.name: _property(field) for field in signal.fields}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [field.name for field in signal.fields if field.required]
    return {**schema, "required": required} if required else schema


def _property(field: SignalField) -> dict[str, Any]:
    return {**field.schema, "description": field.description}


def _operation(signal: Signal, schema: str) -> dict[str, Any]:
    types = ("application/json", "application/x-www-form-urlencoded")
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    required = any(field.required for field in signal.fields)
    return {
        "operationId": schema.lower(),
        "summary": signal.summary,
        "tags": ["signals"],
        "parameters": [],
        "requestBody": {"required": required, "content": dict.fromkeys(types, content)},
        "responses": _responses(),
        "security": [{SECURITY: []}],
    }


def _responses() -> dict[str, Any]:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    done = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    refused = {"description": "Refused", "content": {"application/json": problem}}
    accepted = {"description": "Done", "content": {"application/json": {"schema": done}}}
    return {"200": accepted, **{str(status): refused for status in _PROBLEM_STATUSES}}
