"""Errors in project files and their positions."""

from dataclasses import dataclass, replace

from agents_app.errors import DroverError


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A position in a file; line and column are counted from 1."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part)


class SkillError(DroverError):
    """A SKILL.md or config.toml cannot be used; `each` has all errors of the agent."""

    code = "bad_skill"

    def __init__(
        self,
        reason: str,
        place: SourcePlace,
        *,
        agent: str | None = None,
        also: "tuple[SkillError, ...]" = (),
    ) -> None:
        self.reason = reason
        self.place = place
        self.agent = agent
        self.also = also
        super().__init__("\n".join([f"{place}: {reason}", *map(str, also)]))

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def line(self) -> int | None:
        return self.place.line

    @property
    def column(self) -> int | None:
        return self.place.column

    @property
    def each(self) -> "tuple[SkillError, ...]":
        """This error and the others found with it, as separate errors."""
        alone = SkillError(self.reason, self.place, agent=self.agent)
        return (alone, *self.also)


class Problems:
    """Collects errors, so that all errors of a file are reported at once."""

    def __init__(self, agent: str | None = None) -> None:
        self.agent = agent
        self.found: list[SkillError] = []

    def add(self, place: SourcePlace, reason: str, *, column: bool = False) -> None:
        # The column of a key is obvious from the line; that of a syntax error is not.
        shown = place if column else replace(place, column=None)
        self.found.append(SkillError(reason, shown, agent=self.agent))

    def add_error(self, error: SkillError) -> None:
        for one in error.each:
            self.found.append(SkillError(one.reason, one.place, agent=self.agent))

    def raise_any(self) -> None:
        if self.found:
            first, *others = sorted(self.found, key=lambda e: (e.path, e.line or 0))
            raise SkillError(first.reason, first.place, agent=self.agent, also=tuple(others))
