"""Adapters of the suites about the documents of herdctl."""

from collections.abc import Callable
from typing import Any

from agents_app.formats.herdctl.documents import SCHEMAS
from agents_app.formats.herdctl.interpolate import UndefinedVariableError, interpolate
from agents_app.formats.herdctl.merge import deep_merge, merge_defaults
from agents_app.formats.herdctl.validate import checked

Case = dict[str, Any]


class Accepted(dict[str, Any]):
    """A valid table with its defaults: a case expects either the table, or only "ok"."""

    def __eq__(self, other: object) -> bool:
        return other == "ok" or dict.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


class ErrorName(str):
    """The name of an error: a case expects either the name, or only that there is an error."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other is True or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def fleet_interpolate(case: Case) -> Any:
    try:
        return interpolate(case["text"], case.get("env") or {})
    except UndefinedVariableError as error:
        return {"error": ErrorName(type(error).__name__)}


def fleet_merge(case: Case) -> Any:
    if "agent" in case:
        return merge_defaults(case.get("defaults"), case["agent"])
    return deep_merge(case.get("base"), case.get("override"))


def fleet_schema(case: Case) -> Any:
    value, found = checked(SCHEMAS[case["schema"]], case["value"])
    if found.issues:
        paths = [".".join(map(str, issue.path)) or "(root)" for issue in found.issues]
        return {"issues": paths}
    return Accepted(value) if isinstance(value, dict) else "ok"


HERDCTL_ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "fleet.interpolate": fleet_interpolate,
    "fleet.merge": fleet_merge,
    "fleet.schema": fleet_schema,
}
