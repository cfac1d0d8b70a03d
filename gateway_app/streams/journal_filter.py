"""Chooses journal entries for a notification stream and renders them as events; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agents_app.events import TailEntry
from agents_app.text import summary
from gateway_app.streams import sse

STARTED, COMPLETED, FAILED = "run.started", "run.completed", "run.failed"
KINDS: Mapping[str, str] = {
    "run.started": STARTED,
    "run.succeeded": COMPLETED,
    **dict.fromkeys(("run.failed", "run.timed_out", "run.stopped", "run.lost", "run.dead"), FAILED),
}


@dataclass(frozen=True, slots=True)
class JournalFilter:
    """The entries of one tenant; without `everything` only how runs start and end."""

    tenant_id: int
    everything: bool = False
    kinds: frozenset[str] = frozenset()
    agent: str | None = None
    run_id: int | None = None
    iso_times: bool = False

    def events(self, entries: Iterable[TailEntry]) -> bytes:
        mine = (entry for entry in entries if entry.tenant_id == self.tenant_id)
        return b"".join(self._event(entry) for entry in mine)

    def _event(self, entry: TailEntry) -> bytes:
        kind = entry.name if self.everything else KINDS.get(entry.name)
        if kind is None or (self.kinds and kind not in self.kinds):
            return b""
        if self.agent not in {None, entry.agent} or self.run_id not in {None, entry.run_id}:
            return b""
        at = sse.time(entry.at, iso_times=self.iso_times)
        more = {"at": at, "detail": entry.detail} if self.everything else {}
        run = _of_run(entry, iso_times=self.iso_times)
        return sse.event("notification", {"kind": kind, **run, **more}, entry.id)


def _of_run(entry: TailEntry, *, iso_times: bool) -> dict[str, Any]:
    """The run as it was when the entry was written: its row may have changed since."""
    finished_at = sse.time(entry.finished_at, iso_times=iso_times)
    ended = KINDS.get(entry.name) in {COMPLETED, FAILED}
    return {
        "task_id": entry.schedule_id,
        "run_id": entry.run_id,
        "agent_id": entry.agent,
        "status": _status(entry),
        "started_at": sse.time(entry.started_at, iso_times=iso_times),
        "completed_at": finished_at if ended else None,
        "result_summary": summary(entry.result_summary or "") if ended else "",
        "error": summary(entry.error or "") if ended else "",
    }


def _status(entry: TailEntry) -> str | None:
    if entry.name not in KINDS:
        return None
    return "running" if entry.name == STARTED else entry.name.removeprefix("run.")
