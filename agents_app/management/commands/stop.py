"""Ends runs, or shuts the scheduler down."""

from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_run_or_agent, find_tenant, seconds_of
from agents_app.errors import Refused
from agents_app.models import Agent, Run, WorkItem
from agents_app.runs import control, shutdown


class Command(DroverCommand):
    help = "End a run, or all runs of an agent; without a name, shut the scheduler down."
    examples = (
        ("stop reporter", "End its runs."),
        ("stop run:42 --timeout 30", "End one, and wait for it."),
        ("stop", "Shut the scheduler down, and wait for what runs."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("target", metavar="RUN|AGENT", nargs="?", default="")
        parser.add_argument(
            "--timeout", metavar="SECONDS", default="", help="Wait at most this long, then fail."
        )
        parser.add_argument(
            "--keep-queue", action="store_true", help="Leave what waits in its queues."
        )

    def handle(
        self, *, tenant: str, target: str, timeout: str, keep_queue: bool, json: bool, **_: Any
    ) -> None:
        seconds = seconds_of(timeout, "--timeout") if timeout else None
        if not target:
            self._shut_down(seconds, keep_queue=keep_queue, json=json)
            return
        if keep_queue:
            raise Refused("--keep-queue is for a shutdown: ending runs never clears a queue")
        found = find_run_or_agent(find_tenant(tenant), target)
        runs, text = self._stop_run(found) if isinstance(found, Run) else self._stop_agent(found)
        if seconds is not None:
            shutdown.wait_for_end(runs, seconds)
        self.result(text, {"runs": runs, "ended": seconds is not None}, json=json)

    def _stop_run(self, run: Run) -> tuple[list[int], str]:
        asked = control.stop_run(run, self.by, self.now)
        return [run.pk], f"run {run.pk} {'is' if asked else 'was already'} told to end"

    def _stop_agent(self, agent: Agent) -> tuple[list[int], str]:
        runs = list(control.unfinished(agent.runs.all()).values_list("pk", flat=True))
        control.stop_agent(agent, self.by, self.now)
        waiting = WorkItem.objects.filter(agent=agent, state=WorkItem.State.QUEUED).count()
        if waiting:
            self.remark(
                f"what waits takes the free slots: {waiting} "
                f"(manage.py pause {agent.name}, or manage.py queue clear {agent.name})"
            )
        return runs, f"{agent.name}: {len(runs)} run{'' if len(runs) == 1 else 's'} told to end"

    def _shut_down(self, seconds: float | None, *, keep_queue: bool, json: bool) -> None:
        cleared = control.begin_shutdown(self.by, self.now, keep_queue=keep_queue)
        if cleared:
            self.remark(f"cleared {cleared} waiting (manage.py queue restore brings them back)")
        try:
            shutdown.wait_until_idle(seconds, self.remark)
        except KeyboardInterrupt:
            self.remark("nothing new starts; manage.py stop waits for the rest and ends Drover")
            raise
        shutdown.finish()
        value = {"state": "stopped", "cleared": cleared}
        self.result("stopped", value, json=json)
