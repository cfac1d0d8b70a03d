"""/v1/signals in the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

SECURITY = "RunToken"
_TEXT, _NUMBER, _WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
_IDS = {"type": "array", "items": _WHOLE, "minItems": 1, "maxItems": 2000}
_URI = {"type": "string", "maxLength": 1024, "description": "Such as github://acme/app/issues/1."}
_SECONDS = {"type": "number", "minimum": 0, "description": "At most 20 in one piece."}
_WAIT = {"type": ["boolean", "number"], "description": "Yes, or for how many seconds."}
# What each takes, and whether it must be there; what it means is in agents_app/signals/handlers.py.
SIGNALS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "status": ("Says what the run is doing", {"text": _TEXT}, ("text",)),
    "progress": ("Says how far it is", {"percent": _NUMBER, "text": _TEXT}, ("percent",)),
    "rerun": ("Asks for another run after this one", {}, ()),
    "return": ("Leaves an answer for whoever called", {"text": _TEXT}, ("text",)),
    "exit": ("Says with which code it will have ended; 15 if none", {"code": _WHOLE}, ()),
    "shutdown": ("Asks to be ended now", {}, ()),
    "call": ("Calls another agent", {"agent": _TEXT, "text": _TEXT}, ("agent",)),
    "check": ("Asks how far a call is", {"id": _WHOLE}, ("id",)),
    "wait": ("Waits until calls have ended", {"ids": _IDS, "timeout": _SECONDS}, ("ids",)),
    "lock": (
        "Takes a lock, at once or when it is free",
        {"uri": _URI, "ttl": _NUMBER, "wait": _WAIT, "timeout": _SECONDS},
        ("uri",),
    ),
    "unlock": ("Gives a lock back", {"uri": _URI}, ("uri",)),
    "lock-heartbeat": ("Keeps a lock for longer", {"uri": _URI, "ttl": _NUMBER}, ("uri",)),
    "usage": (
        "Reports tokens and dollars that were used since the last report",
        {"tokens_in": _WHOLE, "tokens_out": _WHOLE, "tokens_cache": _WHOLE, "cost_usd": _NUMBER},
        (),
    ),
    "schedule": (
        "Schedules this agent by time, as a /schedule line does",
        {"line": {"type": "string", "description": "PHRASE: MESSAGE, list, cancel N, ..."}},
        ("line",),
    ),
    "inbox": ("Reads messages", {"timeout": _SECONDS, "peek": {"type": "boolean"}}, ()),
}
_PROBLEMS = (400, 401, 403, 404, 405, 408, 409, 413, 429, 503)


# --- the document ---------------------------------------------------------------------------


def describe(document: dict[str, Any], prefix: str) -> None:
    """Adds the signals, with the only security they know: the token that a run was given."""
    schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes[SECURITY] = {
        "type": "http",
        "scheme": "bearer",
        "description": "DROVER_RUN_TOKEN of a run; worth nothing once it has ended.",
    }
    schemas = document["components"].setdefault("schemas", {})
    for name, (summary, properties, required) in SIGNALS.items():
        schema = f"Signal_{name.replace('-', '_')}"
        schemas[schema] = _schema(properties, required)
        operation = _operation(schema.lower(), summary, schema, required=bool(required))
        document["paths"][f"{prefix}signals/{name}"] = {"post": operation}


def _schema(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    fields = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**fields, "required": list(required)} if required else fields


def _operation(name: str, summary: str, schema: str, *, required: bool) -> dict[str, Any]:
    kinds = ("application/json", "application/x-www-form-urlencoded")
    fields = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["signals"],
        "parameters": [],
        "requestBody": {"required": required, "content": dict.fromkeys(kinds, fields)},
        "responses": _responses(),
        "security": [{SECURITY: []}],
    }


def _responses() -> dict[str, Any]:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    done = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    refused = {"description": "Refused", "content": {"application/json": problem}}
    accepted = {"description": "Done", "content": {"application/json": {"schema": done}}}
    return {"200": accepted, **{str(status): refused for status in _PROBLEMS}}
