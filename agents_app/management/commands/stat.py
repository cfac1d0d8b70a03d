"""Shows the state of the fleet, once or repeatedly."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from time import sleep
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, Part, find_agent, find_tenant, grid, seconds_of, shortened
from agents_app.clock import local
from agents_app.database import schema_problem
from agents_app.errors import Refused
from agents_app.models import DEFAULT_TENANT
from agents_app.reports import AgentStatus, Fleet, LastRun, SchedulerStatus, read_fleet
from agents_app.runs import missing_processes, read_scheduler
from agents_app.text import relative

AGENT_COLUMNS = ("agent", "state", "running", "queue", "last run", "next fire")
WORKER_COLUMNS = ("worker", "host", "pid", "state", "running", "lease until")
# The width of a terminal in which no line is wrapped.
LONGEST_LINE = 100
EVERY_SECONDS = "2"
SHORTEST_SECONDS = 0.2


class Command(DroverCommand):
    help = "Show the scheduler, every agent and the workers."
    examples = (
        ("stat", "State of the fleet."),
        ("stat -w --every 5", "Refresh every five seconds until Ctrl-C."),
        ("stat reporter --json", "One agent as JSON."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agents", metavar="AGENT", nargs="*", help="Only these agents.")
        parser.add_argument(
            "-a", "--all", action="store_true", help="Also agents of earlier project directories."
        )
        parser.add_argument("-w", "--watch", action="store_true", help="Refresh until Ctrl-C.")
        often = f"Interval of --watch in seconds ({EVERY_SECONDS})."
        parser.add_argument("--every", metavar="SECONDS", default=EVERY_SECONDS, help=often)
        super().add_arguments(parser)

    def handle(
        self, *, tenant: str, agents: list[str], watch: bool, every: str, json: bool, **options: Any
    ) -> None:
        # An agent that is named is shown, wherever its directory was.
        self.all_projects = options["all"] or bool(agents)
        if tenant != DEFAULT_TENANT or agents:
            owner = find_tenant(tenant)
            agents = [find_agent(owner, name).name for name in agents]
        if watch:
            self._watch(tenant, agents, interval_of(every), json=json)
        elif json:
            self.screen.json(self._read(tenant, agents))
        else:
            self.screen.show(fleet_parts(self._read(tenant, agents), self.now))

    def _read(self, tenant: str, agents: list[str]) -> Fleet:
        fleet = read_fleet(tenant, self.now, all_projects=self.all_projects)
        chosen = [agent for agent in fleet.agents if not agents or agent.name in agents]
        return replace(fleet, agents=chosen)

    def _watch(self, tenant: str, agents: list[str], seconds: float, *, json: bool) -> None:
        """Refreshes until Ctrl-C, which is not an error here."""
        try:
            if json:
                while True:
                    self.screen.json_line(self._read(tenant, agents))
                    sleep(seconds)
            with self.screen.live() as show:
                while True:
                    now = self.now
                    show(
                        [
                            f"{local(now)}, stop with Ctrl-C",
                            *fleet_parts(self._read(tenant, agents), now),
                        ]
                    )
                    sleep(seconds)
        except KeyboardInterrupt:
            return


def interval_of(text: str) -> float:
    seconds = seconds_of(text, "--every")
    if seconds < SHORTEST_SECONDS:
        raise Refused(f"--every {text!r}: expected at least {SHORTEST_SECONDS:g} seconds")
    return seconds


def fleet_parts(fleet: Fleet, now: datetime) -> Sequence[Part]:
    parts: list[Part] = [*scheduler_lines(fleet.scheduler)]
    if problem := schema_problem():
        parts.append(f"schema: {problem}")
    if fleet.scheduler.state == "running" and (
        missing := missing_processes(read_scheduler(now), now)
    ):
        parts.append(f"not running: {', '.join(missing)} (run manage.py doctor)")
    if fleet.agents:
        parts += ["", grid(AGENT_COLUMNS, [agent_row(agent, now) for agent in fleet.agents])]
        # Below the table: beside the other columns a sentence would be wrapped to many lines.
        notes = [f"{agent.name}: {agent.note}" for agent in fleet.agents if agent.note]
        parts += ["", *(shortened(note, LONGEST_LINE) for note in notes)] if notes else []
    else:
        parts.append("no agents yet (manage.py discover shows what is on disk)")
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
