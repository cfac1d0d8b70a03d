"""The last 14 days of an agent: numbers, charts, and a table by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from agents_app.admin.bar_charts import BarChart, ChartColumn, chart
from agents_app.admin.formatting import duration, exact
from agents_app.budgets import day_of
from agents_app.models import Agent, Usage
from agents_app.reports import DayStatistics, EndedRun, Summary, summarize_days, summarize_runs

# The latest runs, found by an index: the cost of the page does not grow with the history.
MOST_RUNS = 2000
DAYS = 14
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class History:
    summary: Summary
    days: Sequence[DayStatistics]
    # End of the oldest counted run; empty if all runs are counted.
    since: str

    @property
    def rate(self) -> str:
        rate = self.summary.rate
        return "-" if rate is None else f"{100 * rate:.1f} %"

    @property
    def p50(self) -> str:
        return _duration(self.summary.p50)

    @property
    def p95(self) -> str:
        return _duration(self.summary.p95)

    @property
    def tokens(self) -> str:
        return f"{sum(day.tokens for day in self.days):,}"

    @property
    def cost(self) -> str:
        return _dollars(sum((day.cost_usd for day in self.days), Decimal(0)))

    @property
    def window(self) -> str:
        """Tokens and cost cover these days, independent of how many runs are counted."""
        return f"in {len(self.days)} days"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers of the charts, newest day first."""
        return [_row(day) for day in reversed(self.days)]

    @property
    def charts(self) -> list[BarChart]:
        days = self.days
        runs = max(day.summary.runs for day in days)
        slowest = max((day.summary.p95 or 0 for day in days), default=0)
        tokens = max(day.tokens for day in days)
        outcomes = [
            _column(d, ("good", d.summary.succeeded), ("bad", d.summary.others)) for d in days
        ]
        durations = [
            _column(d, ("slow", d.summary.p95 or 0), ("usual", d.summary.p50 or 0)) for d in days
        ]
        used = [_column(day, ("usual", day.tokens)) for day in days]
        shown = [
            chart("Runs and failures", f"{runs:,}", outcomes, stacked=True),
            chart("Duration (median, p95)", duration(slowest), durations),
            chart("Tokens", f"{tokens:,}", used),
        ]
        # Harnesses that report no cost have no chart of it.
        return [*shown, *_cost_chart(days)]


def history_of(agent: Agent, now: datetime) -> History:
    zone = agent.tenant.zone
    today = day_of(now, zone)
    ended = agent.runs.filter(slot__isnull=True).order_by("-id")
    rows = ended.values_list("state", "started_at", "finished_at")[:MOST_RUNS]
    runs = [EndedRun(state, start, end) for state, start, end in rows if end is not None]
    usage = Usage.objects.filter(agent=agent, day__gt=today - timedelta(days=DAYS))
    used = {
        day: (tokens, cost) for day, tokens, cost in usage.values_list("day", "tokens", "cost_usd")
    }
    since = exact(runs[-1].finished_at) if len(runs) == MOST_RUNS else ""
    return History(summarize_runs(runs), summarize_days(runs, used, today, DAYS, zone), since)


def _cost_chart(days: Sequence[DayStatistics]) -> list[BarChart]:
    highest = max(day.cost_usd for day in days)
    columns = [_column(day, ("usual", float(day.cost_usd))) for day in days]
    return [chart("Cost", _dollars(highest), columns)] if highest else []


def _column(day: DayStatistics, *values: tuple[str, float]) -> ChartColumn:
    row = _row(day)
    text = f"{row['day']}: {row['runs']} runs, {row['succeeded']} succeeded, median {row['p50']}, "
    text += f"p95 {row['p95']}, {row['tokens']} tokens, {row['cost']}"
    return ChartColumn(f"{day.day:%d %b}", text, values)


def _row(day: DayStatistics) -> dict[str, Any]:
    summary = day.summary
    return {
        "day": f"{day.day:%Y-%m-%d}",
        "runs": f"{summary.runs:,}",
        "succeeded": f"{summary.succeeded:,}",
        "p50": _duration(summary.p50),
        "p95": _duration(summary.p95),
        "tokens": f"{day.tokens:,}",
        "cost": _dollars(day.cost_usd),
    }


def _dollars(amount: Decimal) -> str:
    """Amounts below a cent have four decimals."""
    return f"${amount:,.4f}" if 0 < amount < CENT else f"${amount:,.2f}"


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)
