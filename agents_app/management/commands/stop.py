"""Stops runs, or shuts down the scheduler."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_run_or_agent, find_tenant
from agents_app.console import (
    DRAIN_CONTINUES,
    KEEP_QUEUE_REFUSED,
    add_stop,
    cleared_text,
    seconds_of,
    stopping_agent_text,
    stopping_run_text,
    waiting_work_text,
)
from agents_app.errors import Refused
from agents_app.models import Agent, Run, WorkItem
from agents_app.runs import control, shutdown


class Command(DroverCommand):
    help = "Stop a run or all runs of an agent; without a name, shut down the scheduler."
    examples = (
        ("stop reporter", "Stop its runs."),
        ("stop run:42 --timeout 30", "Stop run 42 and wait for its end."),
        ("stop", "Let current runs finish, then stop all processes."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_stop(parser)

    def handle(
        self, *, tenant: str, target: str, timeout: str, keep_queue: bool, json: bool, **_: Any
    ) -> None:
        seconds = seconds_of(timeout, "--timeout") if timeout else None
        if not target:
            self._shut_down(seconds, keep_queue=keep_queue, json=json)
            return
        if keep_queue:
            raise Refused(KEEP_QUEUE_REFUSED)
        found = find_run_or_agent(find_tenant(tenant), target)
        runs, text = self._stop_run(found) if isinstance(found, Run) else self._stop_agent(found)
        if seconds is not None:
            shutdown.wait_for_runs(runs, seconds)
        self.result(text, {"runs": runs, "ended": seconds is not None}, json=json)

    def _stop_run(self, run: Run) -> tuple[list[int], str]:
        asked = control.stop_run(run, self.by, self.now)
        return [run.pk], stopping_run_text(run.pk, asked=asked)

    def _stop_agent(self, agent: Agent) -> tuple[list[int], str]:
        runs = list(control.filter_unfinished(agent.runs.all()).values_list("pk", flat=True))
        control.stop_agent(agent, self.by, self.now)
        waiting = WorkItem.objects.filter(agent=agent, state=WorkItem.State.QUEUED).count()
        if waiting:
            self.remark(waiting_work_text(agent.name, waiting))
        return runs, stopping_agent_text(agent.name, len(runs))

    def _shut_down(self, seconds: float | None, *, keep_queue: bool, json: bool) -> None:
        cleared = shutdown.begin_drain(self.by, self.now, keep_queue=keep_queue)
        if cleared:
            self.remark(cleared_text(cleared))
        try:
            shutdown.wait_until_idle(seconds, self.remark)
        except KeyboardInterrupt:
            self.remark(DRAIN_CONTINUES)
            raise
        shutdown.wait_until_stopped(self.now)
        value = {"state": "stopped", "cleared": cleared}
        self.result("stopped", value, json=json)
