"""The base of commands that enqueue work: they report the work item and can follow its runs."""

import math
import sys
from collections.abc import Sequence
from time import monotonic

from django.core.management.base import CommandParser

from agents_app.cli.command import INTERRUPTED, DroverCommand
from agents_app.cli.option_values import seconds_of
from agents_app.errors import Refused
from agents_app.models import Run, WorkItem
from agents_app.output import StillRunning, runs_of_work_item, text_until_end
from agents_app.reports import last_run
from agents_app.runs import missing_processes, read_scheduler, why_waiting

TIMED_OUT = 124


class EnqueueCommand(DroverCommand):
    def add_wait(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--wait", action="store_true", help="Follow its output and exit with its exit code."
        )
        parser.add_argument(
            "--timeout",
            metavar="SPAN",
            default="",
            help="With --wait: stop waiting after 30, 10m or 1.5h and exit with 124; "
            "the work continues.",
        )

    def wait_seconds(self, *, wait: bool, timeout: str) -> float:
        """How long to wait; called before work is enqueued, because it refuses wrong options."""
        if timeout and not wait:
            raise Refused("--timeout is how long --wait waits: add --wait, or omit --timeout")
        return seconds_of(timeout, "--timeout") if timeout else math.inf

    def report(self, item: WorkItem, *, json: bool, wait: bool, seconds: float = math.inf) -> None:
        """Print the work item; with `wait` also follow its runs and exit with their exit code."""
        self._warn_without_worker()
        if not (wait and json):
            self._report_item(item, json=json)
        if wait:
            sys.exit(self._wait(item, seconds, json=json))

    def report_all(self, items: Sequence[WorkItem], *, json: bool) -> None:
        self._warn_without_worker()
        if json:
            self.screen.json({"asked": [described(item, _newest_run(item)) for item in items]})
            return
        for item in items:
            self._report_item(item, json=False)

    def _warn_without_worker(self) -> None:
        if "worker" in missing_processes(read_scheduler(self.now), self.now):
            self.remark(
                "no worker is running: the work item starts when Drover is started (manage.py up)"
            )

    def _report_item(self, item: WorkItem, *, json: bool) -> None:
        run = _newest_run(item)
        if json:
            self.screen.json(described(item, run))
        elif run:
            self.screen.say(f"work item {item.pk}: run {run.pk} of {item.agent.name}")
        else:
            self.screen.say(f"work item {item.pk} queued: {why_waiting(item)}")

    def _wait(self, item: WorkItem, seconds: float, *, json: bool) -> int:
        """Follows all runs of the work item; returns the exit code of the last."""
        run: Run | None = None
        give_up_at = monotonic() + seconds
        try:
            for run_id in runs_of_work_item(item.pk, give_up_at):
                run = self._follow(run_id, give_up_at, json=json)
        except StillRunning:
            return self._timed_out(item, seconds, json=json)
        except KeyboardInterrupt:
            self.remark(
                f"work item {item.pk} continues (stop it with manage.py stop {item.agent.name})"
            )
            return INTERRUPTED
        item.refresh_from_db()
        if json:
            self.screen.json(described(item, run))
        if run is None:
            self.remark(f"work item {item.pk} never ran: {item.state}, {item.reason}")
        return exit_code_of(run)

    def _timed_out(self, item: WorkItem, seconds: float, *, json: bool) -> int:
        item.refresh_from_db()
        run = _newest_run(item)
        if json:
            self.screen.json(described(item, run))
        state = f"run {run.pk} is {run.state}" if run else f"queued: {why_waiting(item)}"
        self.remark(
            f"not finished after {seconds:g} s: work item {item.pk} continues, {state} "
            f"(stop it with manage.py stop {item.agent.name})"
        )
        return TIMED_OUT

    def _follow(self, run_id: int, give_up_at: float, *, json: bool) -> Run:
        for text in text_until_end(run_id, give_up_at):
            if not json:
                self.screen.text(text)
        run = Run.objects.get(pk=run_id)
        self.remark(ending_of(run))
        return run


def _newest_run(item: WorkItem) -> Run | None:
    return item.runs.order_by("-pk").first()


def described(item: WorkItem, run: Run | None) -> dict[str, object]:
    run_id = run.pk if run else None
    return {
        # The names of the API, and those of version 0.1.0, which scripts read.
        "work_item_id": item.pk,
        "run_id": run_id,
        "work_item": item.pk,
        "run": run_id,
        "trace_id": item.trace_id,
        "state": str(item.state),
        "agent": item.agent.name,
        "last_run": last_run(run),
        "waits_because": why_waiting(item) if item.state == WorkItem.State.QUEUED else None,
    }


def ending_of(run: Run) -> str:
    """`run 227 lost: its worker died`, `run 228 failed (exit code 3)`."""
    code = "" if run.exit_code is None else f" (exit code {run.exit_code})"
    # The stored error of a lost run starts with the state: "lost: its worker died".
    reason = run.error.removeprefix(f"{run.state}: ")
    error = f": {reason}" if reason else code
    return f"run {run.pk} {run.state}{error}"


def exit_code_of(run: Run | None) -> int:
    """As in a shell: 128 plus the number of a signal, 124 for a timeout."""
    if run is None:
        return 1
    if run.state == Run.State.SUCCEEDED:
        return 0
    if run.state == Run.State.TIMED_OUT:
        return TIMED_OUT
    code = run.exit_code or 1
    return 128 - code if code < 0 else code
