"""Claims and reports in systems with labels and comments: labels show the state of an item, and
the marks in comments decide which Drover works on it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents_app.work_sources.kinds.api import ApiError
from agents_app.work_sources.kinds.comments import MarkedItem
from agents_app.work_sources.kinds.contract import (
    Candidate,
    ClaimMark,
    ClaimReason,
    ClaimResult,
    ItemReport,
    SourceAccess,
    WorkDetails,
)
from agents_app.work_sources.kinds.markers import MarkKind
from agents_app.work_sources.kinds.settings import SourceLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemState:
    """An item as it was read; `labels` are in lower case."""

    item: Candidate
    is_open: bool
    # A reason for which no agent may work on the item, such as that it is a pull request.
    refusal: str = ""

    @property
    def labels(self) -> set[str]:
        return {label.lower() for label in self.item.labels}


class LabelledItems(ABC):
    """The steps of a claim; a system adds the requests. `key` identifies an item in requests."""

    def __init__(self, labels: SourceLabels, access: SourceAccess, *, cleanup: bool) -> None:
        self.names = labels
        self.access = access
        self.cleanup = cleanup

    # --- requests of a system -----------------------------------------------------------------

    @abstractmethod
    def key_of(self, item_id: str) -> str: ...

    @abstractmethod
    def read_item(self, key: str) -> ItemState: ...

    @abstractmethod
    def read_details(self, key: str) -> WorkDetails: ...

    @abstractmethod
    def add_label(self, key: str, label: str) -> None: ...

    @abstractmethod
    def remove_label(self, key: str, label: str) -> None:
        """Does nothing if the item does not have the label."""

    @abstractmethod
    def finish(self, key: str) -> None:
        """Close the item as completed."""

    @abstractmethod
    def marked(self, key: str) -> MarkedItem: ...

    # --- claiming -----------------------------------------------------------------------------

    def claim(
        self, item_id: str, _token: str, /, *, only_ready: bool = True, again: bool = False
    ) -> ClaimResult:
        key = self.key_of(item_id)
        marked = again
        try:
            state = self.read_item(key)
            if refusal := self._refusal(state, only_ready=only_ready, again=again):
                return refusal
            self.add_label(key, self.names.in_progress)
            marked = True
            if self.names.ready.lower() in state.labels:
                self.remove_label(key, self.names.ready)
            state = self.read_item(key)
        except ApiError as error:
            return _failed(error, is_marked=marked or not _has_no_effect(error))
        if refusal := self._refusal(state, only_ready=False, again=True):
            return replace(refusal, is_marked=True)
        return ClaimResult(True, details=WorkDetails(item=state.item))

    def _refusal(self, state: ItemState, *, only_ready: bool, again: bool) -> ClaimResult | None:
        claimed = self.names.in_progress.lower() in state.labels
        if not state.is_open:
            return ClaimResult(False, "invalid_state", "it is closed")
        if state.refusal:
            return ClaimResult(False, "invalid_state", state.refusal)
        if claimed and not again:
            message = f"it has the label {self.names.in_progress}"
            return ClaimResult(False, "already_claimed", message)
        if only_ready and not claimed and self.names.ready.lower() not in state.labels:
            return ClaimResult(False, "invalid_state", f"it has lost the label {self.names.ready}")
        return None

    def confirm(self, item_id: str, mark: ClaimMark) -> ClaimResult:
        key = self.key_of(item_id)
        first, finished = self.marked(key).is_first(mark)
        state = self.read_item(key)
        in_progress = self.names.in_progress
        if not first:
            if finished or not state.is_open:
                self.remove_label(key, in_progress)
            return ClaimResult(False, "already_claimed", "another Drover claimed it first")
        if not state.is_open or in_progress.lower() not in state.labels:
            self.marked(key).withdraw(mark)
            if not state.is_open:
                self.remove_label(key, in_progress)
            return ClaimResult(False, "invalid_state", "it was closed or relabelled meanwhile")
        return ClaimResult(True, details=self.read_details(key))

    # --- reporting ----------------------------------------------------------------------------

    def complete(self, item_id: str, report: ItemReport) -> None:
        key = self.key_of(item_id)
        if not self.marked(key).report(report, "done", self.access.now()):
            return
        self.remove_label(key, self.names.in_progress)
        if report.outcome == "success":
            self.finish(key)

    def release(self, item_id: str, report: ItemReport) -> None:
        key = self.key_of(item_id)
        if report.interrupted and not self._is_ours(item_id, report):
            return
        relabel = self.cleanup or report.interrupted
        kind: MarkKind = "release" if relabel else "done"
        if not self.marked(key).report(report, kind, self.access.now()):
            return
        self.remove_label(key, self.names.in_progress)
        if relabel:
            self.add_label(key, self.names.ready)

    def _is_ours(self, item_id: str, report: ItemReport) -> bool:
        """Whether an interrupted claim was the first one; removes its mark if it was not."""
        key = self.key_of(item_id)
        if report.again and self.marked(key).has_report(report, "release"):
            return True  # an earlier attempt has found that it was the first one
        if self.names.in_progress.lower() not in self.read_item(key).labels:
            self.marked(key).withdraw(report.mark)
            return False
        return self.confirm(item_id, replace(report.mark, again=True)).success


def _has_no_effect(error: ApiError) -> bool:
    """Whether the refused request has changed nothing for certain."""
    return error.status is not None and error.status < 500


def _failed(error: ApiError, *, is_marked: bool) -> ClaimResult:
    reasons: Mapping[int | None, ClaimReason] = {404: "not_found", 403: "permission_denied"}
    reason = "source_error" if error.rate_limited else reasons.get(error.status, "source_error")
    return ClaimResult(False, reason, str(error), is_marked=is_marked)
