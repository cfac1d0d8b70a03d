"""The end of claims in systems with comments: which claim is the first, and what was reported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents_app.work_sources.kinds.api import WorkSourceError
from agents_app.work_sources.kinds.contract import ClaimMark, ItemReport
from agents_app.work_sources.kinds.markers import (
    FINISHED,
    HIDDEN,
    ClaimComment,
    MarkedText,
    MarkKind,
    find_mark,
    owner_of,
    read_marks,
    with_mark,
)

# After a comment is written, until all comments written before it can be read.
SETTLE_SECONDS = 1.0
# The longest time between the label and the comment of a claim by another Drover.
CLAIM_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedItem:
    """The comments of one item: `read` returns those of trusted authors since a time, in order."""

    read: Callable[[datetime], Sequence[MarkedText]]
    write: Callable[[str], object]
    delete: Callable[[str], object]
    sleep: Callable[[float], None]
    # How a mark is written in the texts of the system.
    form: str = HIDDEN

    def is_first(self, mark: ClaimMark) -> tuple[bool, bool]:
        """Write the mark unless it exists; whether it is the first, and whether all is finished.

        The comment of a claim that is not the first is deleted.
        """
        marks = self._marks(mark.since) if mark.again else []
        if find_mark(marks, "claim", mark.token) is None:
            self.write(with_mark(mark.text, "claim", mark.token, self.form))
            self.sleep(SETTLE_SECONDS)
            marks = self._marks(mark.since)
        owner = owner_of(marks, mark.since)
        if owner != mark.token:
            self._delete_claim(marks, mark.token)
        return owner == mark.token, owner == FINISHED

    def withdraw(self, mark: ClaimMark) -> None:
        """Delete the mark, if it exists: the item is not worked on."""
        self._delete_claim(self._marks(mark.since), mark.token)

    def has_report(self, report: ItemReport, kind: MarkKind) -> bool:
        marks = self._marks(report.mark.since)
        return find_mark(marks, kind, report.mark.token) is not None

    def report(self, report: ItemReport, kind: MarkKind, now: datetime) -> bool:
        """Write the report unless an earlier attempt has written it.

        False: another Drover has claimed the item since that attempt, and nothing is left to do.
        Raises if that is not certain yet.
        """
        marks = self._marks(report.mark.since) if report.again else []
        written = find_mark(marks, kind, report.mark.token)
        if written is None:
            self.write(with_mark(report.text, kind, report.mark.token, self.form))
            return True
        later = marks[marks.index(written) + 1 :]
        if any(mark.kind == "claim" for mark in later):
            return False
        if kind == "release" and now - written.at < timedelta(seconds=CLAIM_SECONDS):
            retry_at = written.at + timedelta(seconds=CLAIM_SECONDS)
            raise WorkSourceError(
                "the item was released, and another Drover may be claiming it", retry_at=retry_at
            )
        return True

    def _delete_claim(self, marks: Sequence[ClaimComment], token: str) -> None:
        for mark in marks:
            if mark.kind == "claim" and mark.token == token:
                self.delete(mark.comment_id)

    def _marks(self, since: datetime) -> list[ClaimComment]:
        return read_marks(self.read(since))
