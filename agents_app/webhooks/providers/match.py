"""Whether a delivery is what a trigger asks for, and if not, why; who asks is not known here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import NOT, FilterField, known_filters, values_of

MOST_VALUES, LONGEST_VALUE = 20, 200


@dataclass(frozen=True, slots=True)
class Miss:
    """One filter that was not met."""

    field: str
    wanted: tuple[str, ...]
    got: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For storing and showing, within bounds: a sender chooses what was got."""
        return {"filter": self.field, "wanted": _some(self.wanted), "got": _some(self.got)}

    def __str__(self) -> str:
        """Within the same bounds: it is made for each agent that listens."""
        got = ", ".join(_some(self.got)) or "nothing"
        return f"{self.field}: wanted {' or '.join(_some(self.wanted))}, got {got}"


def _some(values: tuple[str, ...]) -> list[str]:
    return [value[:LONGEST_VALUE] for value in values[:MOST_VALUES]]


@dataclass(frozen=True, slots=True)
class Match:
    misses: tuple[Miss, ...] = ()

    @property
    def matched(self) -> bool:
        return not self.misses

    @property
    def reason(self) -> str:
        return "; ".join(str(miss) for miss in self.misses)


def match_filters(
    fields: Mapping[str, FilterField], filters: Mapping[str, Any], context: Context
) -> Match:
    """Every field must be met, by any of its values; unknown names are refused earlier."""
    known = known_filters(fields)
    wanted = {name: values_of(value) for name, value in filters.items()}
    asked = {n: v for n, v in wanted.items() if v and n.removeprefix(NOT) in known}
    plain = {name: values for name, values in asked.items() if name in known}
    misses = [*_missing(plain, known, context)]
    misses += _unwanted({n: v for n, v in asked.items() if n not in known}, known, context)
    return Match(tuple(misses))


def _missing(
    asked: Mapping[str, tuple[str, ...]], known: Mapping[str, FilterField], context: Context
) -> Iterable[Miss]:
    by_target: dict[str, list[str]] = {}
    for name in asked:
        by_target.setdefault(known[name].target, []).append(name)
    for names in by_target.values():
        field = known[names[0]]
        seen = tuple(field.seen(context))
        wanted = tuple(value for name in names for value in asked[name])
        if not (any_fits(wanted, seen) or (field.absent_passes and not seen)):
            yield Miss("/".join(names), wanted, seen)


def _unwanted(
    asked: Mapping[str, tuple[str, ...]], known: Mapping[str, FilterField], context: Context
) -> Iterable[Miss]:
    for name, values in asked.items():
        seen = tuple(known[name.removeprefix(NOT)].seen(context))
        if any_fits(values, seen):
            yield Miss(name, tuple(f"not {value}" for value in values), seen)


def any_fits(wanted: Iterable[str], seen: Iterable[str]) -> bool:
    found = tuple(seen)
    return any(fits(pattern, value) for pattern in wanted for value in found)


def fits(pattern: str, value: str) -> bool:
    """Exact, or with `*` for any characters and `?` for one; brackets mean themselves."""
    if pattern == value:
        return True
    globs = "*" in pattern or "?" in pattern
    return globs and fnmatchcase(value, pattern.replace("[", "[[]"))
