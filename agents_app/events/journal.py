"""What happened, written in the transaction in which it happens, and logged once it has."""

import logging
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import transaction

from agents_app.database import execute, to_database_time

log = structlog.get_logger("drover")
_standard = logging.getLogger("drover")
STEPS = frozenset({"run.admitted", "run.started"})
LOSSES = frozenset(
    {"work.overflowed", "run.lost", "run.dead", "rule.failed", "rules.invalid", "rules.disabled"}
)

_COLUMNS = "(tenant_id, agent_id, run_id, name, at, detail)"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    name: str
    at: datetime
    tenant_id: int
    agent_id: int | None = None
    run_id: int | None = None
    detail: str = ""
    # For the log only: the run has it in its row.
    trace_id: str = ""


def record(*entries: JournalEntry) -> None:
    """Must be called inside the transaction that makes the entries true."""
    rows = ", ".join(["(%s, %s, %s, %s, %s, %s)"] * len(entries))
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
        )
    ]
    execute(f"INSERT INTO drover_run_event {_COLUMNS} VALUES {rows}", values)  # noqa: S608
    log_after_commit(*entries)


def log_after_commit(*entries: JournalEntry) -> None:
    transaction.on_commit(lambda: _log(entries))


def _log(entries: tuple[JournalEntry, ...]) -> None:
    """One line a run at INFO, the one that says how it ended: logging costs more than SQL."""
    for e in entries:
        level = _level(e.name)
        if _standard.isEnabledFor(level):
            who = {"tenant_id": e.tenant_id, "agent_id": e.agent_id, "run_id": e.run_id}
            story = {"trace_id": e.trace_id} if e.trace_id else {}
            log.log(level, e.name, **story, **who, detail=e.detail)


def _level(name: str) -> int:
    if name in STEPS:
        return logging.DEBUG
    return logging.WARNING if name in LOSSES else logging.INFO
