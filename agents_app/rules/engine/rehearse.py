"""A dry run: what the rules would do if this were their moment; nothing is done or written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import RuleBook, RuleState, Tenant
from agents_app.rules.engine.decide import settled
from agents_app.rules.engine.holder import is_gone
from agents_app.rules.engine.judge import Judgement, judge
from agents_app.rules.engine.listing import book_of
from agents_app.rules.engine.snapshot import look_at_fleet
from agents_app.rules.engine.summons import Summons, look_at_summons
from agents_app.rules.engine.tick import blocked_reason
from agents_app.rules.language import (
    Rule,
    Snapshot,
    Summon,
    Tell,
    needs_of,
    next_due,
    rule_text,
    warnings,
)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """One rule; without obstacles it would fire at the next look."""

    rule: Rule
    due_at: datetime
    judgement: Judgement
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def fires(self) -> bool:
        return not self.obstacles

    @property
    def told(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.rule.name,
            "line": self.rule.line,
            "fires": self.fires,
            "why_not": list(self.obstacles),
            "due_at": self.due_at,
            "condition": self.judgement.true,
            "because": self.judgement.because,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class _Moment:
    """What is the same for all of them."""

    now: datetime
    book: RuleBook
    closed: str
    snapshot: Snapshot
    summons: Summons


def dry_run_rules(tenant: Tenant, rules: Sequence[Rule], now: datetime) -> list[Rehearsed]:
    """Rules that stand in the rows as they stand here go on with what they have; others are new."""
    known = {row.name: row for row in RuleState.objects.filter(tenant=tenant)}
    fleet = look_at_fleet(tenant, needs_of(rules), now)
    summoned = {rule.action.agent for rule in rules if isinstance(rule.action, Summon)}
    moment = _Moment(
        now=now,
        book=book_of(tenant),
        closed=blocked_reason(tenant),
        snapshot=fleet.snapshot,
        # A file may name more that do not exist than a query takes.
        summons=look_at_summons(tenant, summoned & fleet.snapshot.agents.keys(), now),
    )
    rehearsed = []
    for rule in rules:
        row = known.get(rule.name)
        row = row if row and row.text == rule_text(rule) and row.next_due_at else None
        due_at = (row and row.next_due_at) or next_due(rule.trigger, now, tenant.zone)
        judgement = judge(rule.conditions, fleet.snapshot)
        obstacles = tuple(_obstacles(rule, row, due_at, judgement, moment))
        doubts = tuple(warnings(rule, fleet.snapshot.agents.keys()))
        rehearsed.append(Rehearsed(rule, due_at, judgement, obstacles, doubts))
    return rehearsed


def _obstacles(
    rule: Rule, row: RuleState | None, due_at: datetime, judgement: Judgement, moment: _Moment
) -> Iterator[str]:
    now = moment.now
    if moment.book.disabled_at:
        yield f"no rule is obeyed: {moment.book.crash}"
    if row and row.held_by and not is_gone(row.held_by, row.held_until, now):
        yield "what it began last still goes on"
    if row and row.backoff_until and row.backoff_until > now:
        yield f"it failed {row.failures} times in a row and waits: {row.reason}"
    if moment.closed:
        yield moment.closed
    if due_at > now:
        yield "not due" if row else "not due: it is new or has changed"
    if not judgement.true:
        yield judgement.because
    if isinstance(rule.action, Tell) and moment.book.is_silent(now):
        yield "messages are silenced"
    action = settled(rule.action, moment.snapshot, judgement)
    if isinstance(action, Summon):
        rule_id = row.pk if row else None
        reason = moment.summons.left_because(action.agent, action.message or "", rule_id)
        yield from filter(None, [reason])
