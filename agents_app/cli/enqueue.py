"""The base of commands that enqueue work: they report the work item and can follow its runs."""

import math
import sys
from collections.abc import Sequence
from time import monotonic

from agents_app.cli.command import DroverCommand
from agents_app.console import (
    INTERRUPTED,
    NO_WORKER,
    TIMED_OUT,
    continues_text,
    ending_of,
    exit_code_of,
    timed_out_text,
    work_as_json,
    work_text,
)
from agents_app.models import Run, WorkItem
from agents_app.output import StillRunning, runs_of_work_item, text_until_end
from agents_app.reports import last_run
from agents_app.runs import missing_processes, read_scheduler, why_waiting


class EnqueueCommand(DroverCommand):
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
            self.remark(NO_WORKER)

    def _report_item(self, item: WorkItem, *, json: bool) -> None:
        run = _newest_run(item)
        if json:
            self.screen.json(described(item, run))
        else:
            reason = None if run else why_waiting(item)
            text = work_text(item.pk, item.agent.name, run.pk if run else None, reason)
            self.screen.say(text)

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
            self.remark(continues_text(item.pk, item.agent.name))
            return INTERRUPTED
        item.refresh_from_db()
        if json:
            self.screen.json(described(item, run))
        if run is None:
            self.remark(f"work item {item.pk} never ran: {item.state}, {item.reason}")
        return exit_code_of(last_run(run) if run else None)

    def _timed_out(self, item: WorkItem, seconds: float, *, json: bool) -> int:
        item.refresh_from_db()
        run = _newest_run(item)
        if json:
            self.screen.json(described(item, run))
        reason = None if run else why_waiting(item)
        shown = last_run(run) if run else None
        self.remark(timed_out_text(seconds, item.pk, item.agent.name, shown, reason))
        return TIMED_OUT

    def _follow(self, run_id: int, give_up_at: float, *, json: bool) -> Run:
        for text in text_until_end(run_id, give_up_at):
            if not json:
                self.screen.text(text)
        run = Run.objects.get(pk=run_id)
        self.remark(ending_of(last_run(run)))
        return run


def _newest_run(item: WorkItem) -> Run | None:
    return item.runs.order_by("-pk").first()


def described(item: WorkItem, run: Run | None) -> dict[str, object]:
    return work_as_json(
        work_item_id=item.pk,
        agent=item.agent.name,
        state=str(item.state),
        trace_id=item.trace_id,
        waits_because=why_waiting(item) if item.state == WorkItem.State.QUEUED else None,
        run=last_run(run) if run else None,
    )
