"""What came of what a rule did, written down: success, failure and backoff, or an early end."""

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
# What came of another rule that had its name says nothing of the one that has it now.
_FRESH: Mapping[str, object] = {"status": S.WAITING, "reason": "", "fired_at": None}


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """`sentence` is for people; `problem` makes it a failure, `left` says that it was not done."""

    sentence: str = ""
    problem: str = ""
    left: str = ""
    stopped: str = ""
    exit_code: int | None = None
    tail: str = ""


def write_down(errand: RuleAction, outcome: ActionOutcome, now: datetime) -> None:
    """Only for the firing it belongs to: a late answer finds the row moved on."""
    in_transaction(lambda: _write(errand, outcome, now))


def _write(errand: RuleAction, outcome: ActionOutcome, now: datetime) -> None:
    mine = RuleState.objects.filter(
        pk=errand.rule_id, fired_at=errand.at, held_by=errand.look.holder
    ).select_for_update()
    row = mine.first()
    if row is None:
        return
    if row.next_due_at is None:
        # Its rule has left the file, and this was the last that anybody wanted to know.
        row.delete()
        return
    changed = row.text != rule_text(errand.rule)
    columns = dict(_FRESH) if changed else _columns(errand, outcome, row, now)
    mine.update(**columns, held_by="", held_until=None, revision=F("revision") + 1)
    if outcome.problem and not changed:
        _note_failure(row, errand, outcome, columns, now)


def _columns(
    errand: RuleAction, outcome: ActionOutcome, row: RuleState, now: datetime
) -> dict[str, object]:
    said = {"exit_code": outcome.exit_code, "tail": outcome.tail}
    if outcome.stopped:
        return {"status": S.ABANDONED, "reason": outcome.stopped[:500], **said}
    if outcome.left:
        status = S.ABANDONED if errand.abandoned else S.SKIP
        return {"status": status, "reason": outcome.left[:500]}
    if not outcome.problem:
        well = {"status": S.OK, "reason": outcome.sentence[:500], **said}
        return {**well, "failures": 0, "backoff_until": None, "seen": ""}
    assert row.next_due_at is not None
    failures, zone = row.failures + 1, errand.look.zone
    until = now + backoff(failures)
    return {
        "status": S.BACKOFF,
        "reason": outcome.problem[:500],
        "failures": failures,
        "backoff_until": until,
        "next_due_at": due_after_failure(errand.rule.trigger, row.next_due_at, until, zone),
        "seen": errand.seen,
        **said,
    }


def _note_failure(
    row: RuleState,
    errand: RuleAction,
    outcome: ActionOutcome,
    columns: dict[str, object],
    now: datetime,
) -> None:
    times = "" if row.failures == 0 else f" ({row.failures + 1} times in a row)"
    about = f"rule {errand.rule.name}: {outcome.problem}{times}"
    wait = f"; not again before {columns['backoff_until']:%H:%M:%S %Z}"
    detail = about[: 500 - len(wait)] + wait
    journal.record(journal.JournalEntry("rule.failed", now, row.tenant_id, detail=detail))
