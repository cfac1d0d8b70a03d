"""Merges tables and documents as herdctl does; pure."""

from collections.abc import Mapping
from typing import Any

from agents_app.skills import Document, KeyPath, canonical_path

# The fields of an agent that `defaults` of a fleet may give.
DEFAULT_FIELDS = (
    *("docker", "work_source", "instances", "working_directory", "session", "model", "max_turns"),
    *("permission_mode", "tools", "allowed_tools", "denied_tools", "mcp_servers", "plugins"),
)

Table = dict[str, Any]


def deep_merge(base: Table | None, override: Table | None) -> Table | None:
    """Tables are merged by key; any other value of `override` replaces that of `base`, null too."""
    if base is None or override is None:
        return base if override is None else override
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        tables = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = deep_merge(below, value) if tables else value
    return merged


def merge_defaults(defaults: Table | None, agent: Table) -> Table:
    """The agent with the defaults of its fleet; the fields of the agent win."""
    given = {key: value for key, value in (defaults or {}).items() if key in DEFAULT_FIELDS}
    return deep_merge(given, agent) or {}


def merge_documents(below: Document, above: Document) -> Document:
    """Merge two documents; positions of both are kept, and those of `above` win."""
    data = deep_merge(below.data, above.data) or {}
    return Document(below.source, data, {**below.places, **above.places})


def with_defaults(defaults: Document, agent: Document) -> Document:
    data = merge_defaults(defaults.data, agent.data)
    return Document(agent.source, data, {**defaults.places, **agent.places})


def part_of(document: Document, at: KeyPath) -> Document:
    """A nested table as a document of its own; empty if there is no such table."""
    value: Any = document.data
    for key in at:
        value = _item(value, key)
    path = canonical_path(at)
    places = {
        where[len(path) :]: place
        for where, place in document.places.items()
        if where[: len(path)] == path and len(where) > len(path)
    }
    return Document(document.source, value if isinstance(value, dict) else {}, places)


def _item(value: Any, key: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(str(key))
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return None
