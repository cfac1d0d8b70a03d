"""Reads the reports in the output of a harness, and stops a run that exceeds its budget."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agents_app.budgets import run_is_over
from agents_app.harness import OutputReader, events
from agents_app.runs import Ending

MAX_ERROR_LENGTH = 2000


class ReportWatcher:
    def __init__(
        self, reader: OutputReader, caps: Mapping[str, Any], stop: Callable[[str], None]
    ) -> None:
        self._reader = reader
        self._caps = caps
        self._stop = stop

    def line(self, text: bytes, _at: float) -> None:
        for event in events(text):
            self._reader.read(event)
            # Not after the last event: the program ends anyway, and the result would depend on
            # whether the exit or the stop came first.
            if self._caps and event.get("type") not in self._reader.final_events:
                self._stop_if_over()

    def _stop_if_over(self) -> None:
        used = self._reader.report().spending
        if over := run_is_over(self._caps, used.tokens, used.cost_usd):
            self._stop(over)

    def applied_to(self, ending: Ending) -> Ending:
        """The ending with the report. A program that reports an error has failed, even with exit
        code 0."""
        report = self._reader.report()
        if report.is_empty:
            return ending
        if not report.error or ending.state not in {"succeeded", "failed"}:
            return replace(ending, report=report)
        error = f"{ending.error}: {report.error}" if ending.error else report.error
        failed = replace(ending, state="failed", error=error[:MAX_ERROR_LENGTH], wants_rerun=False)
        return replace(failed, report=report)
