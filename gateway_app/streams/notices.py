"""From an entry of the journal to what a listener is told of it; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.events import TailEntry
from agents_app.text import summary
from gateway_app.streams import wire

STARTED, COMPLETED, FAILED = "run.started", "run.completed", "run.failed"
KINDS: Mapping[str, str] = {
    "run.started": STARTED,
    "run.succeeded": COMPLETED,
    **dict.fromkeys(("run.failed", "run.timed_out", "run.stopped", "run.lost", "run.dead"), FAILED),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of what happens in a tenant; `everything` is more than how runs begin and end."""

    tenant_id: int
    everything: bool = False
    kinds: frozenset[str] = frozenset()
    agent: str | None = None
    run_id: int | None = None

    def events(self, entries: Iterable[TailEntry]) -> bytes:
        return b"".join(self._event(told) for told in entries if told.tenant_id == self.tenant_id)

    def _event(self, told: TailEntry) -> bytes:
        kind = told.name if self.everything else KINDS.get(told.name)
        if kind is None or (self.kinds and kind not in self.kinds):
            return b""
        if self.agent not in {None, told.agent} or self.run_id not in {None, told.run_id}:
            return b""
        more = {"at": _epoch(told.at), "detail": told.detail} if self.everything else {}
        return wire.event("notification", {"kind": kind, **_of_run(told), **more}, told.id)


def _of_run(told: TailEntry) -> dict[str, Any]:
    """As it was at this moment: the row may be further already."""
    ended = KINDS.get(told.name) in {COMPLETED, FAILED}
    return {
        "task_id": told.schedule_id,
        "run_id": told.run_id,
        "agent_id": told.agent,
        "status": _status(told),
        "started_at": _epoch(told.started_at),
        "completed_at": _epoch(told.finished_at) if ended else None,
        "result_summary": summary(told.result_summary or "") if ended else "",
        "error": summary(told.error or "") if ended else "",
    }


def _status(told: TailEntry) -> str | None:
    if told.name not in KINDS:
        return None
    return "running" if told.name == STARTED else told.name.removeprefix("run.")


def _epoch(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
