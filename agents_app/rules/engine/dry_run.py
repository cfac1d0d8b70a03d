"""Dry run: which rules would fire at this time, and why not; changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import RuleBook, RuleState, Tenant
from agents_app.rules.engine.decide import resolve_action
from agents_app.rules.engine.evaluate import ConditionResult, evaluate_conditions
from agents_app.rules.engine.holder import is_gone
from agents_app.rules.engine.listing import book_of
from agents_app.rules.engine.snapshot import read_fleet
from agents_app.rules.engine.summons import RecentSummons, read_summons
from agents_app.rules.engine.tick import blocked_reason
from agents_app.rules.language import (
    Rule,
    SendMessage,
    Snapshot,
    Summon,
    next_due,
    required_data,
    rule_text,
    rule_warnings,
)


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The result for one rule; without obstacles it would fire at the next tick."""

    rule: Rule
    due_at: datetime
    result: ConditionResult
    obstacles: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def fires(self) -> bool:
        return not self.obstacles

    @property
    def as_dict(self) -> dict[str, Any]:
        """The representation in the API and in JSON output."""
        return {
            "name": self.rule.name,
            "line": self.rule.line,
            "fires": self.fires,
            "why_not": list(self.obstacles),
            "due_at": self.due_at,
            "condition": self.result.holds,
            "because": self.result.reason,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class _DryRun:
    """What all rules of one dry run have in common."""

    now: datetime
    book: RuleBook
    blocked_reason: str
    snapshot: Snapshot
    summons: RecentSummons


def dry_run_rules(tenant: Tenant, rules: Sequence[Rule], now: datetime) -> list[DryRunResult]:
    """One result per rule; a rule whose text is stored unchanged has the state of its row."""
    known = {row.name: row for row in RuleState.objects.filter(tenant=tenant)}
    fleet = read_fleet(tenant, required_data(rules), now)
    summoned = {rule.action.agent for rule in rules if isinstance(rule.action, Summon)}
    dry_run = _DryRun(
        now=now,
        book=book_of(tenant),
        blocked_reason=blocked_reason(tenant),
        snapshot=fleet.snapshot,
        # Only existing agents: a file may name more unknown ones than a query has parameters.
        summons=read_summons(tenant, summoned & fleet.snapshot.agents.keys(), now),
    )
    results = []
    for rule in rules:
        row = known.get(rule.name)
        row = row if row and row.text == rule_text(rule) and row.next_due_at else None
        due_at = (row and row.next_due_at) or next_due(rule.trigger, now, tenant.zone)
        result = evaluate_conditions(rule.conditions, fleet.snapshot)
        obstacles = tuple(_obstacles(rule, row, due_at, result, dry_run))
        warnings = tuple(rule_warnings(rule, fleet.snapshot.agents.keys()))
        results.append(DryRunResult(rule, due_at, result, obstacles, warnings))
    return results


def _obstacles(
    rule: Rule, row: RuleState | None, due_at: datetime, result: ConditionResult, dry_run: _DryRun
) -> Iterator[str]:
    now = dry_run.now
    if dry_run.book.disabled_at:
        yield f"the evaluation of rules is disabled: {dry_run.book.crash}"
    if row and row.held_by and not is_gone(row.held_by, row.held_until, now):
        yield "the previous action is still running"
    if row and row.backoff_until and row.backoff_until > now:
        times = "once" if row.failures == 1 else f"{row.failures} times in a row"
        yield f"the rule failed {times} and waits: {row.reason}"
    if dry_run.blocked_reason:
        yield dry_run.blocked_reason
    if due_at > now:
        yield "not due" if row else "not due: the rule is new or has changed"
    if not result.holds:
        yield result.reason
    if isinstance(rule.action, SendMessage) and dry_run.book.is_silent(now):
        yield "messages are silenced"
    action = resolve_action(rule.action, dry_run.snapshot, result)
    if isinstance(action, Summon):
        summon = (action.agent, action.message or "", row.pk if row else None)
        yield from filter(None, [dry_run.summons.skip_reason(*summon)])
