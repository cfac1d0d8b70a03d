"""Which filters a provider knows and what each looks at; whether one matches is match's."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agents_app.webhooks.providers.context import Context

NOT = "not_"
# Close enough to be a slip of the hand; a guess beyond that misleads.
LIKENESS = 0.75
_MEANT = {"repository": "repos", "project": "repos", "projects": "repos", "resource": "resources"}

Seen = Callable[[Context], Iterable[str]]


@dataclass(frozen=True, slots=True)
class FilterField:
    """`target` joins fields that are two names of one thing; one of either is enough.

    `absent_passes`: an event that has no such thing at all is not what the filter is about.
    """

    seen: Seen
    target: str
    absent_passes: bool = False


def looks_at(attribute: str, *, absent_passes: bool = False) -> FilterField:
    def seen(context: Context) -> Iterable[str]:
        value = getattr(context, attribute)
        values = value if isinstance(value, tuple) else (value,)
        return [one for one in values if one]

    return FilterField(seen, attribute, absent_passes)


def known_filters(fields: Mapping[str, FilterField]) -> dict[str, FilterField]:
    """Everybody can be asked who sent it."""
    return {**fields, "sender": looks_at("sender")}


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
    """Those that no delivery would ever be held against, so that nothing is let through by them."""
    known = known_filters(fields)
    return [
        UnknownFilter(name, _suggestion(name, known))
        for name in names
        if name.removeprefix(NOT) not in known
    ]


def _suggestion(name: str, known: Collection[str]) -> str | None:
    negated, bare = name.startswith(NOT), name.removeprefix(NOT)
    meant = _MEANT.get(bare)
    close = get_close_matches(bare, sorted(known), n=1, cutoff=LIKENESS)
    found = meant if meant in known else next(iter(close), None)
    return f"{NOT}{found}" if found and negated else found


def values_of(wanted: Any) -> tuple[str, ...]:
    """One value or several; nothing wanted is no constraint."""
    several = wanted if isinstance(wanted, list | tuple) else (wanted,)
    return tuple(str(one) for one in several if one not in ("", None))
