"""What every signal has in common: the reply, the row it writes to, the entry in the journal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import Run
from agents_app.signals import locks
from agents_app.signals.calls import note_signal
from agents_app.signals.fields import Fields, number

# In one piece; whoever wants to wait longer asks again.
LONGEST_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Reply:
    """`wait_seconds` is how long the run is willing to wait for one that is done."""

    content: Mapping[str, Any]
    done: bool = True
    wait_seconds: float = 0.0


Signal = Callable[[Run, Fields, datetime], Reply]


def say(run: Run, now: datetime, event: str = "", detail: str = "", **columns: Any) -> Reply:
    def change() -> None:
        note_signal(run, now, **columns)
        if event:
            record(run, event, detail, now)

    in_transaction(change)
    return Reply({"ok": True})


def record(run: Run, name: str, detail: str, now: datetime) -> None:
    """In the caller's transaction."""
    whose = (run.tenant_id, run.agent_id, run.pk)
    journal.record(journal.JournalEntry(name, now, *whose, detail, run.trace_id))


def patience(fields: Fields, default: float) -> float:
    """A longer wait is made of several: see LONGEST_WAIT_SECONDS."""
    asked = number(fields, "timeout", 0, 86_400, default)
    return min(default if asked is None else asked, LONGEST_WAIT_SECONDS)


def epoch(at: datetime) -> float:
    return locks.as_number(at.timestamp())
