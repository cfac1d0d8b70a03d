"""One look at the database for everybody who has a stream open, beside the event loop."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from agents_app.database import ENGINE
from agents_app.events import Tail, TailEntry
from agents_app.output import Progress, progress_of
from gateway_app.streams.standing import ABOUT_RIGHTS, without_rights
from gateway_app.streams.ticket import Subscriber

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    told: list[TailEntry] = field(default_factory=list)
    cursor: int | None = None
    runs: dict[int, Progress] = field(default_factory=dict)
    without_rights: frozenset[Subscriber] = frozenset()


def look(
    tail: Tail | None, runs: Collection[int], guests: Collection[Subscriber], ask: bool
) -> Seen:
    """`ask` for everybody's rights; also done when something has just happened to any."""
    told = tail.read(monotonic()) if tail else []
    ask = ask or any(entry.name in ABOUT_RIGHTS for entry in told)
    return Seen(
        told,
        tail.cursor if tail else None,
        progress_of(runs) if runs else {},
        without_rights(guests) if ask else frozenset(),
    )


def closing(read: Callable[[], T]) -> T:
    """Read and release the connection: a stream is open for hours and reads for milliseconds."""
    try:
        return read()
    finally:
        ENGINE.release_connection()
