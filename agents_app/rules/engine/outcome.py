"""Records the outcome of a rule's action: success, failure with backoff, or an early end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import RuleState
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.language import backoff, due_after_failure, rule_text

S = RuleState.Status
# For a rule whose text changed while the action of the old text was running.
_FRESH: Mapping[str, object] = {"status": S.WAITING, "reason": "", "fired_at": None}


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """`problem` makes the action a failure; `skipped` and `stopped` say why it did not finish."""

    done: str = ""
    problem: str = ""
    skipped: str = ""
    stopped: str = ""
    exit_code: int | None = None
    tail: str = ""


def record_outcome(action: RuleAction, outcome: ActionOutcome, now: datetime) -> None:
    """Write the outcome to the row, if the row still belongs to the firing of this action."""
    in_transaction(lambda: _write(action, outcome, now))


def _write(action: RuleAction, outcome: ActionOutcome, now: datetime) -> None:
    held = RuleState.objects.filter(
        pk=action.rule_id, fired_at=action.at, held_by=action.evaluation.holder
    ).select_for_update()
    row = held.first()
    if row is None:
        return
    if row.next_due_at is None:
        # The rule was removed from the file while its action was running.
        row.delete()
        return
    changed = row.text != rule_text(action.rule)
    columns = dict(_FRESH) if changed else _columns(action, outcome, row, now)
    held.update(**columns, held_by="", held_until=None, revision=F("revision") + 1)
    if outcome.problem and not changed:
        _record_failure(row, action, outcome, columns, now)


def _columns(
    action: RuleAction, outcome: ActionOutcome, row: RuleState, now: datetime
) -> dict[str, object]:
    output = {"exit_code": outcome.exit_code, "tail": outcome.tail}
    if outcome.stopped:
        return {"status": S.ABANDONED, "reason": outcome.stopped[:500], **output}
    if outcome.skipped:
        status = S.ABANDONED if action.abandoned else S.SKIP
        return {"status": status, "reason": outcome.skipped[:500]}
    if not outcome.problem:
        succeeded = {"status": S.OK, "reason": outcome.done[:500], **output}
        return {**succeeded, "failures": 0, "backoff_until": None, "seen": ""}
    assert row.next_due_at is not None
    failures, zone = row.failures + 1, action.evaluation.zone
    until = now + backoff(failures)
    return {
        "status": S.BACKOFF,
        "reason": outcome.problem[:500],
        "failures": failures,
        "backoff_until": until,
        "next_due_at": due_after_failure(action.rule.trigger, row.next_due_at, until, zone),
        "seen": action.seen,
        **output,
    }


def _record_failure(
    row: RuleState,
    action: RuleAction,
    outcome: ActionOutcome,
    columns: dict[str, object],
    now: datetime,
) -> None:
    times = "" if row.failures == 0 else f" ({row.failures + 1} times in a row)"
    failure = f"rule {action.rule.name}: {outcome.problem}{times}"
    wait = f"; next attempt after {columns['backoff_until']:%H:%M:%S %Z}"
    detail = failure[: 500 - len(wait)] + wait
    journal.record(journal.JournalEntry("rule.failed", now, row.tenant_id, detail=detail))
