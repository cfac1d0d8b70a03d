"""The fleet at a glance."""

from typing import Any

from agents_app.cli.command import DroverCommand
from agents_app.cli.find import find_tenant
from agents_app.cli.fleet import AgentStatus, Fleet, LastRun, SchedulerStatus, read_fleet
from agents_app.cli.screen import shortened
from agents_app.cli.times import local
from agents_app.maintenance.readiness import readiness
from agents_app.skills.sync import DEFAULT_TENANT

AGENT_COLUMNS = ("agent", "state", "running", "queue", "last run", "next fire", "note")
WORKER_COLUMNS = ("worker", "host", "pid", "state", "running", "lease until")


class Command(DroverCommand):
    help = "Show the scheduler, every agent and the workers."

    def handle(self, *, tenant: str, json: bool, **_: Any) -> None:
        if tenant != DEFAULT_TENANT:
            find_tenant(tenant)
        fleet = read_fleet(tenant, self.now)
        if json:
            self.screen.json(fleet)
        else:
            self._print(fleet)

    def _print(self, fleet: Fleet) -> None:
        self.screen.say(scheduler_line(fleet.scheduler))
        if fleet.scheduler.state == "running" and (missing := readiness(self.now)):
            self.screen.say(f"no sign of life: {', '.join(missing)} (manage.py doctor says more)")
        if fleet.agents:
            self.screen.say("")
            self.screen.table(AGENT_COLUMNS, [agent_row(agent) for agent in fleet.agents])
        else:
            self.screen.say("no agents yet (manage.py discover shows what is on disk)")
        if fleet.workers:
            self.screen.say("")
            rows = [
                (w.name, w.host, w.pid, w.state, f"{w.running}/{w.concurrency}", w.lease_until)
                for w in fleet.workers
            ]
            self.screen.table(WORKER_COLUMNS, rows)


def scheduler_line(scheduler: SchedulerStatus) -> str:
    parts = [f"scheduler {scheduler.state}"]
    if scheduler.started_at and scheduler.state != "stopped":
        parts[0] += f" since {local(scheduler.started_at)}"
    if scheduler.paused_at:
        note = f" ({scheduler.pause_note})" if scheduler.pause_note else ""
        parts.append(f"paused since {local(scheduler.paused_at)}{note}")
    parts.append(f"{scheduler.check_count} checks, {scheduler.trigger_count} triggers")
    if scheduler.last_check_at:
        parts.append(f"last check {local(scheduler.last_check_at)}")
    parts.append(f"{scheduler.running_runs} running, {scheduler.queue_depth} waiting")
    return "; ".join(parts)


def agent_row(agent: AgentStatus) -> tuple[object, ...]:
    return (
        agent.name,
        agent.state,
        f"{agent.running + agent.pending}/{agent.scale}",
        f"{agent.queue_depth}/{agent.queue_size}",
        run_text(agent.last_run),
        agent.next_fire_at,
        shortened(agent.note),
    )


def run_text(run: LastRun | None) -> str:
    if run is None:
        return "-"
    at = run.finished_at or run.started_at
    return f"{run.id} {run.state}" + (f" {local(at)}" if at else "")
