"""The filters of a provider and the field of the context that each compares; see match.py."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agents_app.webhooks.providers.context import Context

NOT = "not_"
# Below this, a suggestion is more often wrong than right.
SIMILARITY = 0.75
_ALIASES = {"repository": "repos", "project": "repos", "projects": "repos", "resource": "resources"}

Seen = Callable[[Context], Iterable[str]]


@dataclass(frozen=True, slots=True)
class FilterField:
    """Filters with the same `target` are two names of one filter: one matching value is enough.

    `absent_passes`: an event without the field matches.
    """

    seen: Seen
    target: str
    absent_passes: bool = False


def filter_on(attribute: str, *, absent_passes: bool = False) -> FilterField:
    def seen(context: Context) -> Iterable[str]:
        value = getattr(context, attribute)
        values = value if isinstance(value, tuple) else (value,)
        return [one for one in values if one]

    return FilterField(seen, attribute, absent_passes)


def filter_on_label(prefix: str) -> FilterField:
    """Compares the rest of the labels that begin with the prefix, such as `severity=`."""

    def seen(context: Context) -> Iterable[str]:
        labels = context.labels or ()
        return [each.removeprefix(prefix) for each in labels if each.startswith(prefix)]

    return FilterField(seen, prefix)


def with_common_filters(fields: Mapping[str, FilterField]) -> dict[str, FilterField]:
    """Adds the filters that every provider has."""
    return {**fields, "sender": filter_on("sender")}


@dataclass(frozen=True, slots=True)
class UnknownFilter:
    field: str
    suggestion: str | None

    def as_dict(self) -> dict[str, Any]:
        return {"filter": self.field, "problem": str(self)}

    def __str__(self) -> str:
        hint = f"; did you mean {self.suggestion!r}?" if self.suggestion else ""
        return f"unknown filter {self.field!r}{hint}"


def unknown_filters(fields: Mapping[str, FilterField], names: Iterable[str]) -> list[UnknownFilter]:
    """The names that the provider does not know; such a filter must not match anything."""
    known = with_common_filters(fields)
    return [
        UnknownFilter(name, _suggestion(name, known))
        for name in names
        if name.removeprefix(NOT) not in known
    ]


def _suggestion(name: str, known: Collection[str]) -> str | None:
    negated, bare = name.startswith(NOT), name.removeprefix(NOT)
    alias = _ALIASES.get(bare)
    close = get_close_matches(bare, sorted(known), n=1, cutoff=SIMILARITY)
    found = alias if alias in known else next(iter(close), None)
    return f"{NOT}{found}" if found and negated else found


def values_of(wanted: Any) -> tuple[str, ...]:
    """The values of a filter, one or several; a filter without values matches everything."""
    several = wanted if isinstance(wanted, list | tuple) else (wanted,)
    return tuple(str(one) for one in several if one not in ("", None))
