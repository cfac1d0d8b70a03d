"""Log lines about firings: one for each, or one for many firings of the same second."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from agents_app.models import Firing, Trigger

log = structlog.get_logger("drover.firings")
# A line costs as much as a statement: thousands of firings that are due together get one.
MOST_LINES = 100
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class LoggedFiring:
    """The ids of a firing, and its outcome if it has one."""

    firing_id: int
    schedule_id: int
    tenant_id: int
    agent: str
    trace_id: str
    outcome: str = Firing.Outcome.UNDECIDED
    reason: str = ""

    @property
    def log_context(self) -> dict[str, object]:
        return {
            "trace_id": self.trace_id,
            "tenant_id": self.tenant_id,
            "agent": self.agent,
            "trigger": str(Trigger.SCHEDULE),
            "schedule_id": self.schedule_id,
            "firing_id": self.firing_id,
        }


def log_claimed(firings: Sequence[LoggedFiring]) -> None:
    if len(firings) > MOST_LINES:
        log.info("firing.claimed", **_summary(firings))
        return
    for firing in firings:
        log.info("firing.claimed", **firing.log_context)


def log_decided(firings: Sequence[LoggedFiring]) -> None:
    by_decision: dict[tuple[str, str], list[LoggedFiring]] = {}
    for firing in firings:
        by_decision.setdefault((firing.outcome, firing.reason), []).append(firing)
    for (outcome, reason), same in by_decision.items():
        many = len(same) > MOST_LINES
        for context in [_summary(same)] if many else [firing.log_context for firing in same]:
            _log_outcome(outcome, reason, context)


def _log_outcome(outcome: str, reason: str, context: dict[str, object]) -> None:
    if outcome == Firing.Outcome.POLLING:
        log.info("firing.polling", **context)
    elif reason == Firing.Reason.NO_WORK:
        log.info("firing.skipped", **context, reason=str(reason))
    elif outcome == Firing.Outcome.SKIPPED:
        log.warning("firing.skipped", **context, reason=str(reason))
    elif outcome == Firing.Outcome.QUEUED:
        log.info("firing.queued", **context)
    else:
        log.info("firing.started", **context)


def _summary(firings: Sequence[LoggedFiring]) -> dict[str, object]:
    named = sorted({firing.schedule_id for firing in firings})[:MOST_NAMED]
    return {"count": len(firings), "schedule_ids": named}
