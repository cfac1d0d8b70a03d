"""Watches a tool's output for what it says of itself, and stops it when it uses too much."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agents_app.budgets import run_is_over
from agents_app.harness import OutputReader, events
from agents_app.runs import Ending

MOST_MESSAGE = 2000


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
            # Who is done anyway is not stopped: it would be chance which of both came first.
            if self._caps and event.get("type") not in self._reader.last_words:
                self._stop_if_over()

    def _stop_if_over(self) -> None:
        used = self._reader.report().spending
        if over := run_is_over(self._caps, used.tokens, used.cost_usd):
            self._stop(over)

    def judge(self, ending: Ending) -> Ending:
        """A tool may end well and say that it failed; what it says is why."""
        report = self._reader.report()
        if report.is_empty:
            return ending
        if not report.error or ending.state not in {"succeeded", "failed"}:
            return replace(ending, report=report)
        said = f"{ending.error}: {report.error}" if ending.error else report.error
        failed = replace(ending, state="failed", error=said[:MOST_MESSAGE], wants_rerun=False)
        return replace(failed, report=report)
