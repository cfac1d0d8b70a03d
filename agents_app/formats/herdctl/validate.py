"""Checks plain values against declared types and adds defaults; pure.

An issue is found where herdctl finds it: a table with a value of the wrong type is not checked by
its rules, a table with an unknown field or a number out of range is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents_app.names import unknown_field
from agents_app.skills import KeyPath, excerpt

_MISSING = object()
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_WITH_HOST = frozenset({"http", "https", "ws", "wss", "ftp"})


@dataclass(frozen=True, slots=True)
class Issue:
    """What is wrong at a path; `key` is an unknown field of the table there."""

    path: KeyPath
    reason: str
    # The value has the wrong type, so that nothing else about it can be checked.
    fatal: bool = True
    key: str | None = None

    @property
    def position(self) -> KeyPath:
        return self.path if self.key is None else (*self.path, self.key)


@dataclass(slots=True)
class Findings:
    issues: list[Issue] = field(default_factory=list)
    # Fields that herdctl drops without an error.
    dropped: list[KeyPath] = field(default_factory=list)

    def add(self, at: KeyPath, reason: str, *, fatal: bool = True, key: str | None = None) -> None:
        self.issues.append(Issue(at, reason, fatal, key))

    def include(self, other: "Findings") -> None:
        self.issues += other.issues
        self.dropped += other.dropped

    @property
    def is_fatal(self) -> bool:
        return any(issue.fatal for issue in self.issues)


class Kind(Protocol):
    """The type of a value."""

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        """The value with defaults; issues are added to `found`."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    pattern: re.Pattern[str] | None = None
    wanted: str = ""
    shortest: int = 0

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, str):
            found.add(at, f"must be text, not {excerpt(value)}")
        elif len(value) < self.shortest:
            found.add(at, "must not be empty", fatal=False)
        elif self.pattern and not self.pattern.fullmatch(value):
            found.add(at, f"must be {self.wanted}, not {excerpt(value)}", fatal=False)
        return value


@dataclass(frozen=True, slots=True)
class Url:
    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, str):
            found.add(at, f"must be text, not {excerpt(value)}")
            return value
        parts = _SCHEME.fullmatch(value)
        if not parts or (parts[1].lower() in _WITH_HOST and not parts[2].strip("/\\")):
            # The value is not repeated: it may contain a token.
            found.add(at, "must be a URL such as https://example.com/hook", fatal=False)
        return value


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number above 0."""

    most: int | None = None

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.add(at, f"must be a whole number, not {excerpt(value)}")
        elif value != int(value):
            found.add(at, f"must be a whole number, not {excerpt(value)}", fatal=False)
        elif value <= 0:
            found.add(at, f"must be more than 0, not {excerpt(value)}", fatal=False)
        elif self.most is not None and value > self.most:
            found.add(at, f"must be at most {self.most}, not {excerpt(value)}", fatal=False)
        return value


@dataclass(frozen=True, slots=True)
class Number:
    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.add(at, f"must be a number, not {excerpt(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, bool):
            found.add(at, f"must be true or false, not {excerpt(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[str, ...]

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, str) or value not in self.options:
            found.add(at, f"must be {', '.join(self.options)}, not {excerpt(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Anything:
    def check(self, value: Any, _at: KeyPath, _found: Findings) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    item: Kind

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, list):
            found.add(at, f"must be a list, not {excerpt(value)}")
            return value
        return [self.item.check(item, (*at, i), found) for i, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Named:
    """A table with names that people choose."""

    item: Kind

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, dict):
            found.add(at, f"must be a table, not {excerpt(value)}")
            return value
        return {key: self.item.check(item, (*at, key), found) for key, item in value.items()}


@dataclass(frozen=True, slots=True)
class Field:
    kind: Kind
    required: bool = False
    default: Any = _MISSING


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A condition on one field of a table whose values have the right types."""

    name: str
    holds: Callable[[Any], bool]
    wanted: str


@dataclass(frozen=True, slots=True)
class Fields:
    """A table with known fields; `strict` refuses others, otherwise they are dropped."""

    fields: Mapping[str, Field]
    strict: bool = False
    rules: Sequence[FieldRule] = ()
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, dict):
            found.add(at, f"must be a table, not {excerpt(value)}")
            return value
        own = Findings()
        checked: dict[str, Any] = {}
        for name, declared in self.fields.items():
            self._check_field(name, declared, value, checked, (*at, name), own)
        self._check_unknown(value, at, own)
        if not own.is_fatal:
            self._check_rules(checked, at, own)
        found.include(own)
        return self.finish(checked) if self.finish and not own.issues else checked

    @staticmethod
    def _check_field(
        name: str,
        declared: Field,
        table: dict[str, Any],
        checked: dict[str, Any],
        at: KeyPath,
        found: Findings,
    ) -> None:
        if name in table:
            checked[name] = declared.kind.check(table[name], at, found)
        elif declared.default is not _MISSING:
            checked[name] = declared.kind.check(deepcopy(declared.default), at, found)
        elif declared.required:
            found.add(at, "is missing")

    def _check_unknown(self, table: dict[str, Any], at: KeyPath, found: Findings) -> None:
        unknown = [key for key in table if key not in self.fields]
        if not self.strict:
            found.dropped += [(*at, key) for key in unknown]
        elif unknown:
            reasons = [f"{key}: {unknown_field(key, self.fields)}" for key in unknown]
            found.add(at, "; ".join(reasons), fatal=False, key=unknown[0])

    def _check_rules(self, table: dict[str, Any], at: KeyPath, found: Findings) -> None:
        for rule in self.rules:
            value = table.get(rule.name)
            if value and not rule.holds(value):
                reason = f"must be {rule.wanted}, not {excerpt(value)}"
                found.add((*at, rule.name), reason, fatal=False)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The first type without an issue, otherwise the first whose issues are not fatal."""

    kinds: Sequence[Kind]
    wanted: str

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        tried: list[tuple[Any, Findings]] = []
        for kind in self.kinds:
            own = Findings()
            checked = kind.check(value, at, own)
            if not own.issues:
                found.include(own)
                return checked
            tried.append((checked, own))
        for checked, own in tried:
            if not own.is_fatal:
                found.include(own)
                return checked
        found.add(at, f"must be {self.wanted}, not {excerpt(value)}")
        return value


@dataclass(frozen=True, slots=True)
class Tagged:
    """A table whose field `tag` decides which fields it has."""

    tag: str
    kinds: Mapping[str, Kind]

    def check(self, value: Any, at: KeyPath, found: Findings) -> Any:
        if not isinstance(value, dict):
            found.add(at, f"must be a table, not {excerpt(value)}")
            return value
        tag = value.get(self.tag)
        if not isinstance(tag, str) or tag not in self.kinds:
            wanted = f"must be {', '.join(self.kinds)}, not {excerpt(tag)}"
            found.add((*at, self.tag), wanted)
            return value
        return self.kinds[tag].check(value, at, found)


def checked(kind: Kind, value: Any) -> tuple[Any, Findings]:
    """The value with defaults, and all issues."""
    found = Findings()
    return kind.check(value, (), found), found
