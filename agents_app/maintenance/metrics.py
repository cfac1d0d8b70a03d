"""The metrics of the fleet that /metrics shows.

They cost a fixed number of queries, whatever the size of the history: unfinished work is read
from partial indexes, and finished work from the totals that a system duty keeps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.db.models import Count, Max

from agents_app.database import execute, fetch_one, to_database_time
from agents_app.events import Key, buckets, read_totals, sum_key
from agents_app.maintenance.totals import ENDS, LATE_SECONDS, RUN_SECONDS
from agents_app.models import (
    Agent,
    MetricCursor,
    Run,
    Scheduler,
    Tenant,
    Worker,
)
from agents_app.runs import read_scheduler

# Metrics by agent stop here; metrics of all agents together count every agent.
MAX_AGENTS = 2000
CLAIM_NOOP = "Messages of workers that started no run, because another message had started it."
Labels = tuple[str, ...]
Samples = list[tuple[Labels, float]]
Distributions = list[tuple[Labels, list[tuple[str, float]], float]]


@dataclass(frozen=True, slots=True)
class ValueMetric:
    """A value for each combination of labels."""

    kind: Literal["gauge", "counter"]
    name: str
    about: str
    labels: Labels
    samples: Samples


@dataclass(frozen=True, slots=True)
class Histogram:
    """For each combination of labels the cumulative buckets and the sum."""

    name: str
    about: str
    labels: Labels
    samples: Distributions


def read_metrics(now: datetime) -> list[ValueMetric | Histogram]:
    totals = read_totals()
    return [
        *_agent_metrics(),
        *_worker_metrics(now),
        *_schedule_metrics(now),
        *_scheduler_metrics(now),
        *_total_metrics(totals),
        *_histograms(totals),
    ]


# --- unfinished work ------------------------------------------------------------------------

# The state is a literal: SQLite uses a partial index only if the condition is in the statement.
_DEPTHS = "SELECT agent_id, count(*) FROM drover_work_item WHERE state = 'queued' GROUP BY agent_id"


def _agent_metrics() -> Iterable[ValueMetric]:
    depths: dict[int, int] = dict(execute(_DEPTHS, []).fetchall())
    live = Run.objects.filter(slot__isnull=False).order_by().values_list("agent_id", "state")
    counted = list(live.annotate(Count("pk")))
    used: dict[int, int] = {}
    states = dict.fromkeys((str(Run.State.PENDING), str(Run.State.RUNNING)), 0)
    for agent_id, state, count in counted:
        used[agent_id] = used.get(agent_id, 0) + count
        states[state] += count
    present = Agent.objects.filter(removed_at__isnull=True)
    some = present.order_by("pk").values_list("pk", "tenant__name", "name", "scale")[:MAX_AGENTS]
    named = {key: ((tenant, name), scale) for key, tenant, name, scale in some}

    def each(name: str, about: str, values: Mapping[int, int]) -> ValueMetric:
        samples: Samples = [(labels, values.get(key, 0)) for key, (labels, _) in named.items()]
        return ValueMetric("gauge", name, about, ("tenant", "agent"), samples)

    scales = {key: scale for key, (_, scale) in named.items()}
    yield _gauge("agents", "Agents whose directory exists.", present.count())
    yield _gauges("runs", "Unfinished runs.", "state", states)
    yield _gauge("queue_depth_all", "Queued work items of all agents.", sum(depths.values()))
    yield each("queue_depth", "Queued work items of the agent.", depths)
    yield each("agent_slots_used", "Slots that unfinished runs hold.", used)
    yield each("agent_slots", "The agent's scale.", scales)


def _worker_metrics(now: datetime) -> Iterable[ValueMetric]:
    """Workers whose lease has expired are not counted, even before the sweep has ended them."""
    living = list(Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now))
    running = Run.objects.filter(slot__isnull=False, worker__isnull=False).order_by()
    counts: dict[int | None, int] = dict(running.values_list("worker_id").annotate(Count("pk")))
    states = dict.fromkeys((str(Worker.State.ALIVE), str(Worker.State.DRAINING)), 0)
    for worker in living:
        states[worker.state] += 1
    threads: Samples = [((worker.name,), worker.concurrency) for worker in living]
    runs: Samples = [((worker.name,), counts.get(worker.pk, 0)) for worker in living]
    yield _gauges("workers", "Worker processes that hold their lease.", "state", states)
    yield ValueMetric(
        "gauge",
        "worker_threads",
        "Runs that the worker can execute in parallel.",
        ("worker",),
        _sum_by_labels(threads),
    )
    yield ValueMetric(
        "gauge", "worker_runs", "Unfinished runs of the worker.", ("worker",), _sum_by_labels(runs)
    )


def _sum_by_labels(samples: Samples) -> Samples:
    """One sample for each name: workers of different hosts may have the same name."""
    sums: dict[Labels, float] = {}
    for labels, value in samples:
        sums[labels] = sums.get(labels, 0) + value
    return list(sums.items())


_SCHEDULE_COUNTS = """
SELECT (SELECT count(*) FROM drover_schedule WHERE state = 'active'),
       (SELECT count(*) FROM drover_schedule WHERE state = 'active' AND next_fire_at <= %s),
       (SELECT count(*) FROM drover_firing WHERE outcome = '' AND decide_at <= %s)"""


def _schedule_metrics(now: datetime) -> Iterable[ValueMetric]:
    active, overdue, undecided = fetch_one(
        _SCHEDULE_COUNTS, [to_database_time(now), to_database_time(now)]
    ) or (0, 0, 0)
    yield _gauge("schedules_active", "Active schedules.", active)
    yield _gauge("schedules_overdue", "Active schedules whose fire time has passed.", overdue)
    yield _gauge("firings_undecided", "Due firings without an outcome.", undecided)


def _scheduler_metrics(now: datetime) -> Iterable[ValueMetric]:
    row = read_scheduler(now)
    states = {state: int(state == row.state) for state in Scheduler.State.values}
    counted_at = MetricCursor.objects.aggregate(at=Max("counted_at"))["at"]
    paused = Tenant.objects.filter(paused_at__isnull=False).count()
    yield _gauges("scheduler_state", "1 for the current state of the scheduler.", "state", states)
    yield _gauge("tenants_paused", "Paused tenants.", paused)
    yield _counter("scheduler_checks", "Searches of beat for due schedules.", row.check_count)
    yield _counter("scheduler_triggers", "Due schedules that beat has claimed.", row.trigger_count)
    for name, about, at in (
        ("scheduler_started", "When the scheduler was started.", row.started_at),
        ("scheduler_last_check", "When beat last recorded its state.", row.last_check_at),
        ("totals_counted", "When the totals were last updated.", counted_at),
    ):
        yield _gauge(f"{name}_timestamp_seconds", about, at.timestamp() if at else 0)


# --- finished work --------------------------------------------------------------------------


def _total_metrics(totals: Mapping[Key, float]) -> Iterable[ValueMetric]:
    for name, about, labels in (
        ("events", "Entries of the journal.", ("name",)),
        ("firings", "Firings by outcome.", ("outcome", "reason")),
        ("deliveries", "Webhook deliveries that were accepted.", ("provider", "outcome")),
        ("deliveries_refused", "Webhook deliveries that were refused.", ("provider", "reason")),
    ):
        samples = sorted((key[1:], count) for key, count in totals.items() if key[0] == name)
        yield ValueMetric("counter", name, about, labels, samples)
    yield _counter("claim_noop", CLAIM_NOOP, totals.get(("claim_noop",), 0.0))
    ended: Samples = [((state,), totals.get(("events", name), 0.0)) for name, state in ENDS.items()]
    yield ValueMetric("counter", "runs_finished", "Runs that have ended.", ("state",), ended)


def _histograms(totals: Mapping[Key, float]) -> Iterable[Histogram]:
    def of(name: str, bounds: Sequence[float], each: Iterable[Labels]) -> Distributions:
        return [
            (labels, buckets(totals, (name, *labels), bounds), totals.get(sum_key(name, labels), 0))
            for labels in each
        ]

    name = "run_duration_seconds"
    runs = of(name, RUN_SECONDS, [(state,) for state in ENDS.values()])
    yield Histogram(name, "From the start of a run to its end.", ("state",), runs)
    name = "firing_lateness_seconds"
    late = of(name, LATE_SECONDS, [()])
    yield Histogram(name, "From the due time of a firing to its record.", (), late)


# --- construction ---------------------------------------------------------------------------


def _gauge(name: str, about: str, value: float) -> ValueMetric:
    return ValueMetric("gauge", name, about, (), [((), value)])


def _counter(name: str, about: str, value: float) -> ValueMetric:
    return ValueMetric("counter", name, about, (), [((), value)])


def _gauges(name: str, about: str, label: str, values: Mapping[str, int]) -> ValueMetric:
    return ValueMetric(
        "gauge", name, about, (label,), [((key,), value) for key, value in values.items()]
    )
