"""Stops runs, or shuts down the scheduler."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_run_or_agent, find_tenant, seconds_of
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
        parser.add_argument("target", metavar="RUN|AGENT", nargs="?", default="")
        parser.add_argument(
            "--timeout",
            metavar="SECONDS",
            default="",
            help="Wait at most this long, then exit with an error; a drain continues.",
        )
        parser.add_argument("--keep-queue", action="store_true", help="Keep queued work items.")

    def handle(
        self, *, tenant: str, target: str, timeout: str, keep_queue: bool, json: bool, **_: Any
    ) -> None:
        seconds = seconds_of(timeout, "--timeout") if timeout else None
        if not target:
            self._shut_down(seconds, keep_queue=keep_queue, json=json)
            return
        if keep_queue:
            raise Refused(
                "--keep-queue applies to a shutdown only: stopping runs does not clear the queue"
            )
        found = find_run_or_agent(find_tenant(tenant), target)
        runs, text = self._stop_run(found) if isinstance(found, Run) else self._stop_agent(found)
        if seconds is not None:
            shutdown.wait_for_runs(runs, seconds)
        self.result(text, {"runs": runs, "ended": seconds is not None}, json=json)

    def _stop_run(self, run: Run) -> tuple[list[int], str]:
        asked = control.stop_run(run, self.by, self.now)
        return [run.pk], f"run {run.pk} {'is being' if asked else 'was already being'} stopped"

    def _stop_agent(self, agent: Agent) -> tuple[list[int], str]:
        runs = list(control.filter_unfinished(agent.runs.all()).values_list("pk", flat=True))
        control.stop_agent(agent, self.by, self.now)
        waiting = WorkItem.objects.filter(agent=agent, state=WorkItem.State.QUEUED).count()
        if waiting:
            self.remark(
                f"{_items(waiting)} in the queue may take the free slots "
                f"(manage.py pause {agent.name}, or manage.py queue clear {agent.name})"
            )
        if not runs:
            return runs, f"{agent.name}: nothing was running"
        return runs, f"{agent.name}: stopping {len(runs)} run{'' if len(runs) == 1 else 's'}"

    def _shut_down(self, seconds: float | None, *, keep_queue: bool, json: bool) -> None:
        cleared = shutdown.begin_drain(self.by, self.now, keep_queue=keep_queue)
        if cleared:
            self.remark(f"cleared {_items(cleared)} (manage.py queue restore puts them back)")
        try:
            shutdown.wait_until_idle(seconds, self.remark)
        except KeyboardInterrupt:
            self.remark("the drain continues: Drover exits when the last run has ended")
            raise
        shutdown.wait_until_stopped(self.now)
        value = {"state": "stopped", "cleared": cleared}
        self.result("stopped", value, json=json)


def _items(count: int) -> str:
    return f"{count} work item{'' if count == 1 else 's'}"
