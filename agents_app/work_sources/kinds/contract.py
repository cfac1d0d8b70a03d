"""The contract of a work source: five operations on the items of another system, and their values.

A claim has two steps. `claim` marks the item as in progress and reads it back; `confirm` decides
which of several Drovers works on it. Both may be repeated after a crash.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from agents_app.work_sources.kinds.api import Send

Priority = Literal["critical", "high", "medium", "low"]
ClaimReason = Literal[
    "", "already_claimed", "invalid_state", "not_found", "permission_denied", "source_error"
]
ItemOutcome = Literal["success", "failure", "released"]
# From the most to the least urgent; a label without one of the words is of medium priority.
PRIORITY_WORDS: Mapping[Priority, frozenset[str]] = {
    "critical": frozenset({"critical", "urgent", "p0"}),
    "high": frozenset({"high", "important", "p1"}),
    "low": frozenset({"low", "p3"}),
}
_ORDER: tuple[Priority, ...] = ("critical", "high", "medium", "low")
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that an agent could work on."""

    id: str
    title: str
    url: str = ""
    labels: tuple[str, ...] = ()
    priority: Priority = "medium"
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class ItemComment:
    author: str
    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDetails:
    """A claimed item with its text, which people outside of the project may have written."""

    item: Candidate
    body: str = ""
    author: str = ""
    comments: tuple[ItemComment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    limit: int | None = None
    cursor: str = ""
    # Labels that an item must have beside the label of items that are ready.
    labels: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    include_claimed: bool = False
    # Of an earlier answer: the source may answer that nothing has changed.
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The candidates, oldest first; `at` is the time of the answer by the clock of the source."""

    candidates: tuple[Candidate, ...] = ()
    next_cursor: str = ""
    etag: str = ""
    unchanged: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMark:
    """Identifies one claim: `since` is when the item was seen as ready, by the source's clock."""

    token: str
    since: datetime
    # For the people who read the item.
    text: str = ""
    # An earlier attempt may have written the mark already.
    again: bool = False


@dataclass(frozen=True, slots=True)
class ClaimResult:
    success: bool
    reason: ClaimReason = ""
    message: str = ""
    details: WorkDetails | None = None
    # Of a failed claim: the item may have been changed, and `release` has to undo it.
    is_marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReport:
    """What is written to an item at the end of its claim."""

    mark: ClaimMark
    outcome: ItemOutcome
    text: str
    # An earlier attempt may have written the report already.
    again: bool = False
    # Of a release: the claim was interrupted. The item becomes ready again, whatever the settings
    # say, if the claim is the first one; otherwise another Drover has the item.
    interrupted: bool = False


class SourceClient(Protocol):
    """One work source of one kind; each method raises a WorkSourceError if the source fails."""

    def fetch(self, options: FetchOptions) -> Fetched:
        """The items that are ready and not claimed."""

    def claim(
        self, item_id: str, token: str, /, *, only_ready: bool = True, again: bool = False
    ) -> ClaimResult:
        """Mark the item as in progress and read it back.

        Without `only_ready` any open item is claimed; `again`: it may have been marked by us.
        """

    def confirm(self, item_id: str, mark: ClaimMark) -> ClaimResult:
        """Whether the claim is the first one; if it is not, its traces are removed."""

    def complete(self, item_id: str, report: ItemReport) -> None:
        """Report the outcome; after a success the item is finished."""

    def release(self, item_id: str, report: ItemReport) -> None:
        """Report why the claim ends, and make the item ready again if the settings say so."""


def _no_wait(_seconds: float) -> None:
    """Do not wait: for tests and for sources that are never repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAccess:
    """What a client needs beside the settings of its source."""

    send: Send
    now: Callable[[], datetime]
    sleep: Callable[[float], None] = _no_wait
    # The fields of the credential that `auth` names.
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    project: Path = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """An entry of the table of kinds."""

    # A dataclass; its fields are those of `work_source` in files, beside `type`.
    settings: type[Any]
    open: Callable[[Any, SourceAccess], SourceClient]
    # The repository, team, project or directory, for people.
    name: Callable[[Any], str]
    # The same with its server: two sources with one place have the same items.
    place: Callable[[Any], str]
    # Whether the context of a webhook delivery says that an item may have become ready.
    wakes: Callable[[Any, Mapping[str, Any]], bool] = lambda _settings, _context: False


def priority_of(labels: Iterable[str]) -> Priority:
    """The most urgent priority that a whole word of a label names: `slow-query` is not low."""
    words = {word for label in labels for word in _WORD.findall(label.lower())}
    for priority, named in PRIORITY_WORDS.items():
        if words & named:
            return priority
    return "medium"


def by_priority(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The most urgent first; of one priority the oldest first."""
    return sorted(candidates, key=lambda each: (_ORDER.index(each.priority), each.created_at))
