"""Success rates and percentiles of durations, by day and in total; pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from math import ceil

SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class EndedRun:
    """An ended run; without a start it has no duration."""

    state: str
    started_at: datetime | None
    finished_at: datetime

    @property
    def seconds(self) -> float | None:
        if self.started_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of runs; without runs the rate and the percentiles are None."""

    runs: int = 0
    succeeded: int = 0
    p50: float | None = None
    p95: float | None = None

    @property
    def others(self) -> int:
        return self.runs - self.succeeded

    @property
    def rate(self) -> float | None:
        return self.succeeded / self.runs if self.runs else None


@dataclass(frozen=True, slots=True)
class DayStatistics:
    day: date
    summary: Summary
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)


def summarize_runs(runs: Iterable[EndedRun]) -> Summary:
    found = list(runs)
    seconds = sorted(run.seconds for run in found if run.seconds is not None)
    succeeded = sum(run.state == SUCCEEDED for run in found)
    return Summary(len(found), succeeded, percentile(seconds, 0.5), percentile(seconds, 0.95))


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The percentile by the nearest-rank method: always a value of the list."""
    return ordered[ceil(share * len(ordered)) - 1] if ordered else None


def summarize_days(
    runs: Iterable[EndedRun],
    used: Mapping[date, tuple[int, Decimal]],
    today: date,
    days: int,
    zone: tzinfo,
) -> list[DayStatistics]:
    """The last days, the oldest first, including days without runs."""
    ended: dict[date, list[EndedRun]] = defaultdict(list)
    for run in runs:
        ended[run.finished_at.astimezone(zone).date()].append(run)
    wanted = (today - timedelta(days=back) for back in reversed(range(days)))
    return [
        DayStatistics(day, summarize_runs(ended[day]), *used.get(day, (0, Decimal(0))))
        for day in wanted
    ]
