"""The journal: entries are written in the transaction of the change and logged after its commit."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from agents_app.database import ENGINE, execute, to_database_time

log = structlog.get_logger("drover")
_standard = logging.getLogger("drover")
DEBUG_EVENTS = frozenset({"run.admitted"})
WARNING_EVENTS = frozenset(
    {"work.overflowed", "run.lost", "run.dead", "rule.failed", "rules.invalid", "rules.disabled"}
)

_COLUMNS = "(tenant_id, agent_id, run_id, name, at, detail, actor)"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    name: str
    at: datetime
    tenant_id: int
    agent_id: int | None = None
    run_id: int | None = None
    detail: str = ""
    # For the log only: the rows of the run and its agent have them.
    trace_id: str = ""
    log_context: Mapping[str, object] | None = None
    # The person, token, rule or run that acted; empty: the event happened by itself.
    actor: str = ""


def record(*entries: JournalEntry) -> None:
    """Write entries in the caller's transaction, which must be that of the change."""
    rows = ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * len(entries))
    values = [
        value
        for e in entries
        for value in (
            e.tenant_id,
            e.agent_id,
            e.run_id,
            e.name,
            to_database_time(e.at),
            e.detail[:500],
            e.actor[:200],
        )
    ]
    execute(f"INSERT INTO drover_run_event {_COLUMNS} VALUES {rows}", values)  # noqa: S608
    log_after_commit(*entries)


def log_after_commit(*entries: JournalEntry) -> None:
    ENGINE.wrapper().on_commit(lambda: _log(entries))


def _log(entries: tuple[JournalEntry, ...]) -> None:
    """At INFO two lines for each run, start and end: a line costs as much as a statement."""
    for e in entries:
        level = _level(e.name)
        if _standard.isEnabledFor(level):
            ids = {"tenant_id": e.tenant_id, "agent_id": e.agent_id, "run_id": e.run_id}
            trace = {"trace_id": e.trace_id} if e.trace_id else {}
            log.log(level, e.name, **trace, **ids, **(e.log_context or {}), detail=e.detail)


def _level(name: str) -> int:
    if name in DEBUG_EVENTS:
        return logging.DEBUG
    return logging.WARNING if name in WARNING_EVENTS else logging.INFO
