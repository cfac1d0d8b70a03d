"""How the fleet is doing, in numbers, for whoever draws curves of them.

A fixed number of quick queries, whatever the size of the history: what is going on is read from
indexes that hold only that, and what is over from the totals that a duty keeps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import Count, Max

from agents_app.database import execute, fetch_one, to_database_time
from agents_app.events import Key, buckets, read_totals, sum_of
from agents_app.maintenance.totals import ENDS, LATE_SECONDS, RUN_SECONDS
from agents_app.models import (
    Agent,
    MetricCursor,
    Run,
    Scheduler,
    Tenant,
    Worker,
)

# So many have lines of their own; the sums are of all.
MOST_AGENTS = 2000
Labels = tuple[str, ...]
Samples = list[tuple[Labels, float]]
Distributions = list[tuple[Labels, list[tuple[str, float]], float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value for each combination of labels."""

    kind: Literal["gauge", "counter"]
    name: str
    about: str
    labels: Labels
    samples: Samples


@dataclass(frozen=True, slots=True)
class Histogram:
    """For each combination of labels the buckets, each with all that are smaller, and the sum."""

    name: str
    about: str
    labels: Labels
    samples: Distributions


def read_figures(now: datetime) -> list[Figure | Histogram]:
    totals = read_totals()
    return [
        *_of_agents(),
        *_of_workers(now),
        *_of_schedules(now),
        *_of_scheduler(),
        *_counted(totals),
        *_histograms(totals),
    ]


# --- what is going on -----------------------------------------------------------------------

# The state stands in the text: SQLite uses a partial index only if it can read it there.
_DEPTHS = "SELECT agent_id, count(*) FROM drover_work_item WHERE state = 'queued' GROUP BY agent_id"


def _of_agents() -> Iterable[Figure]:
    depths: dict[int, int] = dict(execute(_DEPTHS, []).fetchall())
    live = Run.objects.filter(slot__isnull=False).order_by().values_list("agent_id", "state")
    counted = list(live.annotate(Count("pk")))
    used: dict[int, int] = {}
    states = dict.fromkeys((str(Run.State.PENDING), str(Run.State.RUNNING)), 0)
    for agent_id, state, count in counted:
        used[agent_id] = used.get(agent_id, 0) + count
        states[state] += count
    present = Agent.objects.filter(removed_at__isnull=True)
    some = present.order_by("pk").values_list("pk", "tenant__name", "name", "scale")[:MOST_AGENTS]
    named = {key: ((tenant, name), scale) for key, tenant, name, scale in some}

    def each(name: str, about: str, values: Mapping[int, int]) -> Figure:
        samples: Samples = [(labels, values.get(key, 0)) for key, (labels, _) in named.items()]
        return Figure("gauge", name, about, ("tenant", "agent"), samples)

    scales = {key: scale for key, (_, scale) in named.items()}
    yield _gauge("agents", "Agents whose directory is there.", present.count())
    yield _gauges("runs", "Unfinished runs.", "state", states)
    yield _gauge("queue_depth_all", "Work that waits, of all agents.", sum(depths.values()))
    yield each("queue_depth", "Work that waits for a slot.", depths)
    yield each("agent_slots_used", "Slots that unfinished runs hold.", used)
    yield each("agent_slots", "The agent's scale.", scales)


def _of_workers(now: datetime) -> Iterable[Figure]:
    """Those whose lease is over count no more, even before the sweep has found them."""
    living = list(Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now))
    running = Run.objects.filter(slot__isnull=False, worker__isnull=False).order_by()
    counts: dict[int | None, int] = dict(running.values_list("worker_id").annotate(Count("pk")))
    states = dict.fromkeys((str(Worker.State.ALIVE), str(Worker.State.DRAINING)), 0)
    for worker in living:
        states[worker.state] += 1
    threads: Samples = [((worker.name,), worker.concurrency) for worker in living]
    runs: Samples = [((worker.name,), counts.get(worker.pk, 0)) for worker in living]
    yield _gauges("workers", "Worker processes that hold their lease.", "state", states)
    yield Figure("gauge", "worker_threads", "Runs that fit a worker.", ("worker",), _once(threads))
    yield Figure("gauge", "worker_runs", "Runs that go on in a worker.", ("worker",), _once(runs))


def _once(samples: Samples) -> Samples:
    """Of two workers of one name, which only different hosts could have, the sum."""
    sums: dict[Labels, float] = {}
    for labels, value in samples:
        sums[labels] = sums.get(labels, 0) + value
    return list(sums.items())


_TIME = """
SELECT (SELECT count(*) FROM drover_schedule WHERE state = 'active'),
       (SELECT count(*) FROM drover_schedule WHERE state = 'active' AND next_fire_at <= %s),
       (SELECT count(*) FROM drover_firing WHERE outcome = '' AND decide_at <= %s)"""


def _of_schedules(now: datetime) -> Iterable[Figure]:
    active, overdue, undecided = fetch_one(
        _TIME, [to_database_time(now), to_database_time(now)]
    ) or (0, 0, 0)
    yield _gauge("schedules_active", "Schedules that fire.", active)
    yield _gauge("schedules_overdue", "Active ones whose time has come.", overdue)
    yield _gauge("firings_undecided", "Recorded, and without an outcome though due.", undecided)


def _of_scheduler() -> Iterable[Figure]:
    row = Scheduler.objects.filter(pk=1).first() or Scheduler(state=Scheduler.State.STOPPED)
    states = {state: int(state == row.state) for state in Scheduler.State.values}
    counted_at = MetricCursor.objects.aggregate(at=Max("counted_at"))["at"]
    paused = Tenant.objects.filter(paused_at__isnull=False).count()
    yield _gauges("scheduler_state", "1 for the state it is in.", "state", states)
    yield _gauge("tenants_paused", "Tenants whose fleet is paused.", paused)
    yield _counter("scheduler_checks", "How often beat has looked.", row.check_count)
    yield _counter("scheduler_triggers", "Schedules that beat has claimed.", row.trigger_count)
    for name, about, at in (
        ("scheduler_started", "When it was started.", row.started_at),
        ("scheduler_last_check", "When beat has last told of itself.", row.last_check_at),
        ("totals_counted", "When the totals have last grown.", counted_at),
    ):
        yield _gauge(f"{name}_timestamp_seconds", about, at.timestamp() if at else 0)


# --- what is over ---------------------------------------------------------------------------


def _counted(totals: Mapping[Key, float]) -> Iterable[Figure]:
    for name, about, labels in (
        ("events", "Entries of the journal.", ("name",)),
        ("firings", "Due instants by what came of them.", ("outcome", "reason")),
        ("deliveries", "Webhooks that were let in.", ("provider", "outcome")),
        ("deliveries_refused", "Webhooks that were not.", ("provider", "reason")),
    ):
        samples = sorted((key[1:], count) for key, count in totals.items() if key[0] == name)
        yield Figure("counter", name, about, labels, samples)
    ended: Samples = [((state,), totals.get(("events", name), 0.0)) for name, state in ENDS.items()]
    yield Figure("counter", "runs_finished", "Runs that have ended.", ("state",), ended)


def _histograms(totals: Mapping[Key, float]) -> Iterable[Histogram]:
    def of(name: str, bounds: Sequence[float], each: Iterable[Labels]) -> Distributions:
        return [
            (labels, buckets(totals, (name, *labels), bounds), totals.get(sum_of(name, labels), 0))
            for labels in each
        ]

    name = "run_duration_seconds"
    runs = of(name, RUN_SECONDS, [(state,) for state in ENDS.values()])
    yield Histogram(name, "From the start of a run to its end.", ("state",), runs)
    name = "firing_lateness_seconds"
    late = of(name, LATE_SECONDS, [()])
    yield Histogram(name, "From the due instant to its record.", (), late)


# --- the parts ------------------------------------------------------------------------------


def _gauge(name: str, about: str, value: float) -> Figure:
    return Figure("gauge", name, about, (), [((), value)])


def _counter(name: str, about: str, value: float) -> Figure:
    return Figure("counter", name, about, (), [((), value)])


def _gauges(name: str, about: str, label: str, values: Mapping[str, int]) -> Figure:
    return Figure(
        "gauge", name, about, (label,), [((key,), value) for key, value in values.items()]
    )
