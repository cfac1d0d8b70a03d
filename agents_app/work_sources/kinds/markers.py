"""Marks of Drover in the comments of an item: they decide which of several claims is the first.

Labels cannot decide it: two Drovers may add the same label at the same time. Comments have an
order that all readers see, and a comment that is written stays after a crash of its writer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

MarkKind = Literal["claim", "release", "done"]
_MARK = re.compile(r"\bdrover:(claim|release|done) ([0-9a-f]{32})\b")
# In Markdown with HTML readers do not see the mark.
HIDDEN = "<!-- {} -->"
# The item is finished: no claim of it is valid.
FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class ClaimComment:
    kind: str
    token: str
    at: datetime
    comment_id: str


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A comment of an author who may write to the item; others are not read for marks."""

    comment_id: str
    at: datetime
    text: str


def with_mark(text: str, kind: MarkKind, token: str, form: str = HIDDEN) -> str:
    """The text with a mark at its end; other marks in the text are made invalid."""
    plain = _MARK.sub(r"drover \1 \2", text)
    return f"{plain}\n\n{form.format(f'drover:{kind} {token}')}".lstrip()


def has_mark(text: str) -> bool:
    return _MARK.search(text) is not None


def read_marks(comments: Iterable[MarkedText]) -> list[ClaimComment]:
    """The marks in the order of the comments."""
    return [
        ClaimComment(match[1], match[2], comment.at, comment.comment_id)
        for comment in comments
        if (match := _MARK.search(comment.text))
    ]


def owner_of(marks: Iterable[ClaimComment], since: datetime) -> str:
    """The token of the first claim since the item was ready, FINISHED, or an empty text.

    A claim is over after its own release. Claims from before `since` are over, too: the item was
    ready again.
    """
    owner = ""
    for mark in marks:
        if mark.at < since:
            continue
        if mark.kind == "claim":
            owner = owner or mark.token
        elif mark.kind == "done":
            return FINISHED
        elif mark.token == owner:
            owner = ""
    return owner


def find_mark(marks: Iterable[ClaimComment], kind: MarkKind, token: str) -> ClaimComment | None:
    return next((mark for mark in marks if mark.kind == kind and mark.token == token), None)
