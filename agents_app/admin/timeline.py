"""The timeline: a lane for each agent, a bar for each run; pure.

Positions are percentages of the width, so the page needs no script. Runs that ended in the same
interval with the same state share a bar, which limits the number of bars.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.timezone import localtime

from agents_app.admin.formatting import duration, page_at
from agents_app.reports import RunGroup

PIECES = 72
MOST_LANES = 12
# Narrower bars could not be seen or clicked.
LEAST_PERCENT = 0.4
# Later states are drawn over earlier ones.
_ORDER = ("succeeded", "stopped", "pending", "running", "lost", "timed_out", "failed", "dead")
# Selectable hours, with the minutes between two marks of the axis.
CHOICES: Mapping[int, int] = {1: 10, 6: 60, 24: 240}


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    hours: int
    until: datetime

    @property
    def since(self) -> datetime:
        return self.until - timedelta(hours=self.hours)

    @property
    def piece_seconds(self) -> float:
        return self.hours * 3600 / PIECES

    def percent(self, at: datetime) -> float:
        """The position from 0 to 100; times outside the window are clamped."""
        share = (at - self.since) / (self.until - self.since)
        return round(min(1.0, max(0.0, share)) * 100, 2)


@dataclass(frozen=True, slots=True)
class TimelineBar:
    key: str
    left: float
    width: float
    state: str
    label: str
    url: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Lane:
    agent_id: int
    name: str
    bars: Sequence[TimelineBar]
    runs: int

    @property
    def label(self) -> str:
        return f"{self.name}: {self.runs} {'run' if self.runs == 1 else 'runs'}"


@dataclass(frozen=True, slots=True)
class Mark:
    left: float
    text: str


@dataclass(frozen=True, slots=True)
class Live:
    """An unfinished run."""

    agent_id: int
    run_id: int
    state: str
    began_at: datetime
    tenant_id: int = 0


def window_of(hours: str | None, now: datetime) -> TimelineWindow:
    """The window of a query parameter; the shortest for an unknown value."""
    chosen = next((each for each in CHOICES if str(each) == hours), min(CHOICES))
    return TimelineWindow(chosen, now)


def busiest(piles: Iterable[RunGroup], live: Iterable[Live]) -> tuple[dict[int, int], int]:
    """The number of runs of each agent with a lane, and the number of agents without one."""
    runs: dict[int, int] = {}
    for pile in piles:
        runs[pile.agent_id] = runs.get(pile.agent_id, 0) + pile.count
    for run in live:
        runs[run.agent_id] = runs.get(run.agent_id, 0) + 1
    chosen = sorted(runs, key=lambda key: (-runs[key], key))[:MOST_LANES]
    return {key: runs[key] for key in chosen}, len(runs) - len(chosen)


def lanes(
    piles: Iterable[RunGroup],
    live: Iterable[Live],
    names: Mapping[int, str],
    runs: Mapping[int, int],
    window: TimelineWindow,
) -> list[Lane]:
    """The lanes, ordered by name."""
    bars: dict[int, list[TimelineBar]] = {key: [] for key in runs if key in names}
    for pile in piles:
        if pile.agent_id in bars:
            bars[pile.agent_id].append(_bar_of_pile(pile, names[pile.agent_id], window))
    for run in live:
        if run.agent_id in bars:
            bars[run.agent_id].append(_bar_of_live(run, names[run.agent_id], window))
    found = [Lane(key, names[key], _in_order(mine), runs[key]) for key, mine in bars.items()]
    return sorted(found, key=lambda lane: (lane.name, lane.agent_id))


def _in_order(bars: list[TimelineBar]) -> list[TimelineBar]:
    return sorted(bars, key=lambda bar: (_ORDER.index(bar.state), bar.left))


# --- bars -----------------------------------------------------------------------------------


def _bar_of_pile(pile: RunGroup, name: str, window: TimelineWindow) -> TimelineBar:
    started, ended = _clock(pile.began_at), _clock(pile.ended_at)
    state = pile.state.replace("_", " ")
    seconds = (pile.ended_at - pile.began_at).total_seconds()
    if pile.count == 1:
        label = f"{name}: run {pile.run_id} {state}, started {started}, took {duration(seconds)}"
        url = page_at("run", pile.run_id)
    else:
        label = f"{name}: {pile.count} runs {state}, from {started} to {ended}"
        url = _runs_url(pile)
    left, width = _place(pile.began_at, pile.ended_at, window)
    return TimelineBar(f"bar-{pile.run_id}", left, width, pile.state, label, url, pile.count)


def _bar_of_live(run: Live, name: str, window: TimelineWindow) -> TimelineBar:
    state = "running" if run.state == "running" else "starting"
    label = f"{name}: run {run.run_id} {state} since {_clock(run.began_at)}"
    left, width = _place(run.began_at, window.until, window)
    return TimelineBar(
        f"bar-{run.run_id}", left, width, run.state, label, page_at("run", run.run_id)
    )


def _place(began_at: datetime, ended_at: datetime, window: TimelineWindow) -> tuple[float, float]:
    left, right = window.percent(began_at), window.percent(ended_at)
    width = max(LEAST_PERCENT, round(right - left, 2))
    return round(min(left, 100 - width), 2), width


def _runs_url(pile: RunGroup) -> str:
    """The list of the pile's runs."""
    wanted = {
        "agent__id__exact": pile.agent_id,
        "state__exact": pile.state,
        "finished_at__gte": pile.began_at.isoformat(),
        "finished_at__lte": pile.ended_at.isoformat(),
    }
    return f"{reverse('admin:agents_app_run_changelist')}?{urlencode(wanted)}"


def _clock(at: datetime) -> str:
    return f"{localtime(at):%H:%M:%S}"


# --- the axis -------------------------------------------------------------------------------


def marks(window: TimelineWindow) -> list[Mark]:
    """Marks at round times of the local clock."""
    step = timedelta(minutes=CHOICES[window.hours])
    midnight = localtime(window.since).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + step * ((localtime(window.since) - midnight) // step + 1)
    times = [first + step * number for number in range(int(timedelta(hours=24) / step) + 1)]
    return [Mark(window.percent(at), f"{at:%H:%M}") for at in times if at <= window.until]
