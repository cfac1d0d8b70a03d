"""The state of scheduler, agents and workers as values, and as the lines and tables of `stat`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import sleep

from agents_app.clock import local
from agents_app.console.option_values import seconds_of
from agents_app.console.screen import Screen
from agents_app.console.tables import Part, grid, shortened
from agents_app.errors import Refused
from agents_app.names import program_name
from agents_app.text import relative

AGENT_COLUMNS = ("agent", "state", "running", "queue", "last run", "next fire")
WORKER_COLUMNS = ("worker", "host", "pid", "state", "running", "lease until")
# The width of a terminal in which no line is wrapped.
LONGEST_LINE = 100
SHORTEST_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    state: str
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None
    paused: bool
    paused_at: datetime | None
    pause_note: str
    running: int
    pending: int
    running_runs: int
    queue_depth: int


@dataclass(frozen=True, slots=True)
class LastRun:
    id: int
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    error: str


@dataclass(frozen=True, slots=True)
class AgentStatus:
    name: str
    state: str
    note: str
    scale: int
    running: int
    pending: int
    queue_depth: int
    work_queue_size: int
    queue_size: int
    last_run: LastRun | None
    next_fire_at: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    name: str
    host: str
    pid: int
    state: str
    running: int
    concurrency: int
    started_at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Fleet:
    scheduler: SchedulerStatus
    agents: list[AgentStatus] = field(default_factory=list)
    workers: list[WorkerStatus] = field(default_factory=list)


# --- for people -----------------------------------------------------------------------------


def fleet_parts(
    fleet: Fleet, now: datetime, *, missing: Sequence[str], schema_problem: str | None
) -> Sequence[Part]:
    """`missing`: the kinds of processes that do not run."""
    parts: list[Part] = [*scheduler_lines(fleet.scheduler)]
    if schema_problem:
        parts.append(f"schema: {schema_problem}")
    if fleet.scheduler.state == "running" and missing:
        parts.append(f"not running: {', '.join(missing)} (run {program_name()} doctor)")
    if fleet.agents:
        parts += ["", grid(AGENT_COLUMNS, [agent_row(agent, now) for agent in fleet.agents])]
        # Below the table: beside the other columns a sentence would be wrapped to many lines.
        notes = [f"{agent.name}: {agent.note}" for agent in fleet.agents if agent.note]
        parts += ["", *(shortened(note, LONGEST_LINE) for note in notes)] if notes else []
    else:
        parts.append(f"no agents yet ({program_name()} discover shows what is on disk)")
    if fleet.workers:
        rows = [
            (w.name, w.host, w.pid, w.state, f"{w.running}/{w.concurrency}", w.lease_until)
            for w in fleet.workers
        ]
        parts += ["", grid(WORKER_COLUMNS, rows)]
    return parts


def scheduler_lines(scheduler: SchedulerStatus) -> tuple[str, str]:
    """Its state, then its counters."""
    parts = [f"scheduler {scheduler.state}"]
    if scheduler.started_at and scheduler.state == "running":
        parts[0] += f" since {local(scheduler.started_at)}"
    if scheduler.state == "draining":
        parts[0] += ": no new run starts, exits when the last run has ended"
    if scheduler.paused_at:
        note = f" ({scheduler.pause_note})" if scheduler.pause_note else ""
        parts.append(f"paused since {local(scheduler.paused_at)}{note}")
    counters = [f"{scheduler.check_count} checks, {scheduler.trigger_count} triggers"]
    if scheduler.last_check_at:
        counters.append(f"last check {local(scheduler.last_check_at)}")
    counters.append(f"{scheduler.running} running, {scheduler.queue_depth} waiting")
    return shortened("; ".join(parts), LONGEST_LINE), "; ".join(counters)


def agent_row(agent: AgentStatus, now: datetime) -> tuple[object, ...]:
    return (
        agent.name,
        agent.state,
        f"{agent.running + agent.pending}/{agent.scale}",
        f"{agent.queue_depth}/{agent.queue_size}",
        run_text(agent.last_run, now),
        relative(agent.next_fire_at, now) if agent.next_fire_at else None,
    )


def run_text(run: LastRun | None, now: datetime) -> str:
    if run is None:
        return "-"
    at = run.finished_at or run.started_at
    return f"{run.id} {run.state}" + (f" {relative(at, now)}" if at else "")


# --- repeatedly -----------------------------------------------------------------------------


def interval_of(text: str) -> float:
    seconds = seconds_of(text, "--every")
    if seconds < SHORTEST_SECONDS:
        raise Refused(f"--every {text!r}: expected at least {SHORTEST_SECONDS:g} seconds")
    return seconds


def watch_fleet(
    screen: Screen,
    read: Callable[[], Fleet],
    parts_of: Callable[[Fleet, datetime], Sequence[Part]],
    seconds: float,
    *,
    json: bool,
) -> None:
    """Refreshes until Ctrl-C, which is not an error here."""
    try:
        if json:
            while True:
                screen.json_line(read())
                sleep(seconds)
        with screen.live() as show:
            while True:
                now = datetime.now(UTC)
                show([f"{local(now)}, stop with Ctrl-C", *parts_of(read(), now)])
                sleep(seconds)
    except KeyboardInterrupt:
        return
