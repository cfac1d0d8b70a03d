"""The expected ledger after a series of claims, by each catch-up policy."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

# As documented.
MOST_CAUGHT_UP = 100
MOST_SHOWN_AS_MISSED = 100
ON_TIME = timedelta(seconds=60)
LATE = timedelta(seconds=10)

# Instant, when it was recorded, and whether it fires or was missed.
Entry = tuple[datetime, datetime, bool]


@dataclass
class Ledger:
    entries: list[Entry] = field(default_factory=list)
    fire_count: int = 0
    missed_count: int = 0
    late_count: int = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.fire_count, self.missed_count, self.late_count


def expected(
    instants: list[datetime], moments: list[datetime], catch_up: str, window: timedelta
) -> Ledger:
    """Each instant is found by the first claim that is not before it."""
    ledger = Ledger()
    for moment, due in _by_moment(instants, moments):
        fire = _to_fire(due, moment, catch_up, window)
        missed = due[: len(due) - len(fire)]
        ledger.entries += [(at, moment, False) for at in missed[-MOST_SHOWN_AS_MISSED:]]
        ledger.entries += [(at, moment, True) for at in fire]
        ledger.fire_count += len(fire)
        ledger.missed_count += len(missed)
        ledger.late_count += sum(moment - at > LATE for at in fire)
    return ledger


def of_claims(claims: list[tuple[datetime, datetime]]) -> Ledger:
    """The ledger of claims that all fire."""
    late = sum(moment - at > LATE for at, moment in claims)
    return Ledger([(at, moment, True) for at, moment in claims], len(claims), 0, late)


def _by_moment(
    instants: list[datetime], moments: list[datetime]
) -> Iterator[tuple[datetime, list[datetime]]]:
    for index, due in groupby(instants, key=lambda at: bisect_left(moments, at)):
        if index < len(moments):
            yield moments[index], list(due)


def _to_fire(
    due: list[datetime], moment: datetime, catch_up: str, window: timedelta
) -> list[datetime]:
    if catch_up == "skip":
        window = ON_TIME
    recent = [at for at in due if moment - at <= window]
    return recent[-MOST_CAUGHT_UP:] if catch_up == "all" else recent[-1:]
