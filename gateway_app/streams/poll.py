"""One poll of the database for all streams of a process; runs on a thread."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from agents_app.database import ENGINE
from agents_app.events import Tail, TailEntry
from agents_app.output import Progress, progress_of
from gateway_app.streams.requests import Subscriber
from gateway_app.streams.rights import RIGHTS_EVENTS, without_rights

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PollResult:
    entries: list[TailEntry] = field(default_factory=list)
    cursor: int | None = None
    runs: dict[int, Progress] = field(default_factory=dict)
    # Subscribers that may no longer read, with the last event of their streams.
    without_rights: Mapping[Subscriber, bytes] = field(default_factory=dict)


def poll(
    tail: Tail | None,
    runs: Collection[int],
    subscribers: Collection[Subscriber],
    *,
    check_rights: bool,
) -> PollResult:
    """Reads new journal entries and the progress of runs.

    Rights are also checked when a new entry says that rights have changed.
    """
    entries = tail.read(monotonic()) if tail else []
    check_rights = check_rights or any(entry.name in RIGHTS_EVENTS for entry in entries)
    return PollResult(
        entries,
        tail.cursor if tail else None,
        progress_of(runs) if runs else {},
        without_rights(subscribers) if check_rights else {},
    )


def read_and_release(read: Callable[[], T]) -> T:
    """Releases the connection afterwards: a stream is open for hours and reads for milliseconds."""
    try:
        return read()
    finally:
        ENGINE.release_connection()
