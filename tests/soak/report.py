"""The report of a soak: acknowledged work is compared with the rows and the notes of the runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Acknowledged or expected keys on one side, and the rows with these keys on the other."""

    name: str
    expected: int
    rows: int
    lost: Sequence[str]
    duplicate: Sequence[str]

    @property
    def is_equal(self) -> bool:
        return not self.lost and not self.duplicate

    def __str__(self) -> str:
        text = f"{self.name}: {self.expected} expected, {self.rows} rows, "
        text += f"lost {len(self.lost)}, duplicate {len(self.duplicate)}"
        return text + "".join(_examples(self.lost, "lost") + _examples(self.duplicate, "twice"))


def _examples(keys: Sequence[str], label: str) -> list[str]:
    return [f"\n    {label}: {', '.join(keys[:5])}"] if keys else []


def compare(name: str, expected: Iterable[str], rows: Mapping[str, int]) -> Comparison:
    """A row that was not acknowledged is no error: its answer may have been lost."""
    keys = set(expected)
    lost = sorted(key for key in keys if not rows.get(key))
    duplicate = sorted(key for key, count in rows.items() if count > 1)
    return Comparison(name, len(keys), sum(rows.values()), lost, duplicate)


def whole_minutes(after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants of `* * * * *`: later than `after`, not later than `until`."""
    instant = after.replace(second=0, microsecond=0) + MINUTE
    while instant <= until:
        yield instant
        instant += MINUTE


@dataclass(frozen=True, slots=True)
class SoakReport:
    """The result of a soak on one database."""

    database: str
    seconds: float
    seed: int
    kills: Mapping[str, int]
    runs: Mapping[str, int]
    answers: Mapping[int, int]
    comparisons: Sequence[Comparison]
    # Runs that found another live run of their agent of scale 1, and unfinished work.
    overlaps: Sequence[str] = ()
    unsettled: Sequence[str] = ()
    # Findings of `doctor --invariants` that are not ok.
    violations: Sequence[str] = ()
    missed_roles: Sequence[str] = field(default=())

    @property
    def problems(self) -> list[str]:
        found = [str(comparison) for comparison in self.comparisons if not comparison.is_equal]
        found += [f"two live runs: {text}" for text in self.overlaps]
        found += [f"not settled: {text}" for text in self.unsettled]
        found += [f"invariant: {text}" for text in self.violations]
        found += [f"no {role} was killed: soak for longer" for role in self.missed_roles]
        return found

    def __str__(self) -> str:
        lines = [
            f"soak on {self.database}: {self.seconds:.0f} s, seed {self.seed}",
            f"kills: {sum(self.kills.values())} ({_counts(self.kills)})",
            f"runs: {sum(self.runs.values())} ({_counts(self.runs)})",
            f"answers to deliveries: {_counts(self.answers)}",
            *map(str, self.comparisons),
            f"two live runs: {len(self.overlaps)}",
            f"invariants: {len(self.violations)} violated",
        ]
        problems = [f"PROBLEM {problem}" for problem in self.problems] or ["no problem"]
        return "\n  ".join([*lines, *problems])


def _counts(counts: Mapping[str, int] | Mapping[int, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(Counter(counts).items()))
