"""Compares the filters of a webhook trigger with the context of a delivery."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import NOT, FilterField, values_of, with_common_filters

MOST_VALUES, LONGEST_VALUE = 20, 200


@dataclass(frozen=True, slots=True)
class Miss:
    """One filter that does not match, with its values and those of the event."""

    field: str
    wanted: tuple[str, ...]
    got: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For storing and showing; shortened, because the sender determines the values."""
        return {"filter": self.field, "wanted": _some(self.wanted), "got": _some(self.got)}

    def __str__(self) -> str:
        """Shortened in the same way, because the text is stored for each subscribed agent."""
        got = ", ".join(_some(self.got)) or "nothing"
        return f"{self.field}: wanted {' or '.join(_some(self.wanted))}, got {got}"


def _some(values: tuple[str, ...]) -> list[str]:
    return [value[:LONGEST_VALUE] for value in values[:MOST_VALUES]]


@dataclass(frozen=True, slots=True)
class FilterMatch:
    misses: tuple[Miss, ...] = ()

    @property
    def matched(self) -> bool:
        return not self.misses

    @property
    def reason(self) -> str:
        return "; ".join(str(miss) for miss in self.misses)


def match_filters(
    fields: Mapping[str, FilterField], filters: Mapping[str, Any], context: Context
) -> FilterMatch:
    """Every filter must match with one of its values; `unknown_filters` finds unknown names."""
    known = with_common_filters(fields)
    wanted = {name: values_of(value) for name, value in filters.items()}
    used = {n: v for n, v in wanted.items() if v and n.removeprefix(NOT) in known}
    plain = {name: values for name, values in used.items() if name in known}
    misses = [*_missing(plain, known, context)]
    misses += _unwanted({n: v for n, v in used.items() if n not in known}, known, context)
    return FilterMatch(tuple(misses))


def _missing(
    filters: Mapping[str, tuple[str, ...]],
    known: Mapping[str, FilterField],
    context: Context,
) -> Iterable[Miss]:
    by_target: dict[str, list[str]] = {}
    for name in filters:
        by_target.setdefault(known[name].target, []).append(name)
    for names in by_target.values():
        field = known[names[0]]
        seen = tuple(field.seen(context))
        wanted = tuple(value for name in names for value in filters[name])
        if not (any_matches(wanted, seen) or (field.absent_passes and not seen)):
            yield Miss("/".join(names), wanted, seen)


def _unwanted(
    filters: Mapping[str, tuple[str, ...]],
    known: Mapping[str, FilterField],
    context: Context,
) -> Iterable[Miss]:
    for name, values in filters.items():
        seen = tuple(known[name.removeprefix(NOT)].seen(context))
        if any_matches(values, seen):
            yield Miss(name, tuple(f"not {value}" for value in values), seen)


def any_matches(wanted: Iterable[str], seen: Iterable[str]) -> bool:
    found = tuple(seen)
    return any(matches_pattern(pattern, value) for pattern in wanted for value in found)


def matches_pattern(pattern: str, value: str) -> bool:
    """Exact, or with `*` for any characters and `?` for one; brackets have no special meaning."""
    if pattern == value:
        return True
    globs = "*" in pattern or "?" in pattern
    return globs and fnmatchcase(value, pattern.replace("[", "[[]"))
