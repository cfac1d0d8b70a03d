"""One tick: evaluates all due rules and submits the actions of those that fire."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import structlog
from django.db import DatabaseError

from agents_app.database import (
    fetch_all,
    from_database_times,
    in_transaction,
    select_columns,
    to_database_time,
    update_many,
)
from agents_app.events import journal
from agents_app.models import DEFAULT_TENANT, RuleBook, RuleState, Scheduler, Tenant
from agents_app.rules.engine.decide import Decision, Evaluation, RuleAction, RuleColumns, decide
from agents_app.rules.engine.holder import is_gone, this_process
from agents_app.rules.engine.outcome import ActionOutcome, record_outcome
from agents_app.rules.engine.reload import delete_removed_rules, reload
from agents_app.rules.engine.snapshot import read_fleet
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    parse_stored,
    printable_line,
    read_project_rules,
    read_source,
    required_data,
    rules_file,
    ticks_were_missed,
)
from agents_app.runs import find_blocks

log = structlog.get_logger("drover.rules")
MAX_CRASHES = 5
Submit = Callable[[RuleAction, int], None]

_COLUMNS = RuleColumns._fields
_TIMES = frozenset(name for name in _COLUMNS if name.endswith(("_at", "_until")))
_RULES = """
SELECT name, text, {columns} FROM drover_rule
WHERE tenant_id = %s{filter} ORDER BY line, id"""
_NEEDS_EVALUATION = (
    " AND (next_due_at <= %s OR failures > 0 OR held_by <> '' OR next_due_at IS NULL)"
)
_SQL_TYPES = {
    **dict.fromkeys(("id", "revision", "failures"), "bigint"),
    **dict.fromkeys(_TIMES, "timestamptz"),
}
_COLUMN_TYPES = {name: _SQL_TYPES.get(name, "text") for name in _COLUMNS}


def evaluate_rules(
    now: datetime, project: Path, submit: Submit, tenant_name: str = DEFAULT_TENANT
) -> int:
    """Evaluate the rules of a tenant with this project, and return how many fired.

    Raises only database errors. After repeated crashes the evaluation is disabled until the file
    changes or Drover is started again.
    """
    is_own = tenant_name == DEFAULT_TENANT
    source = read_source(rules_file(project)) if is_own else read_project_rules(project)
    book = _book(source, tenant_name)
    if book is None:
        return 0
    started_at = Scheduler.objects.filter(pk=1).values_list("started_at", flat=True).first()
    if book.disabled_at and not _may_be_enabled(book, source, started_at):
        return 0
    try:
        fired = _tick(book, source, started_at, now, submit)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("rules.look_failed")
        _record_crash(book, source, f"{type(error).__name__}: {error}", now)
        return 0
    if book.crashes or book.disabled_at:
        _enable(book)
    return fired


def _book(source: RulesSource, tenant_name: str) -> RuleBook | None:
    """The book with its tenant; None for a project that never had a rules file."""
    found = RuleBook.objects.filter(tenant__name=tenant_name).select_related("tenant").first()
    if found or not source.fingerprint:
        return found
    tenant = Tenant.objects.filter(name=tenant_name).first()
    if tenant is None:
        return None
    return in_transaction(lambda: RuleBook.objects.get_or_create(tenant=tenant)[0])


def _tick(
    book: RuleBook, source: RulesSource, started_at: datetime | None, now: datetime, submit: Submit
) -> int:
    tenant, zone = book.tenant, book.tenant.zone
    if source.fingerprint != book.fingerprint:
        reload(book, source, zone, now)
    ticks_missed = ticks_were_missed(book.ticked_at, started_at, now)
    rules = _rules_to_evaluate(tenant, now, every_rule=ticks_missed)
    decisions: list[Decision] = []
    if rules:
        evaluation = Evaluation(
            now=now,
            last_tick_at=book.ticked_at or now,
            zone=zone,
            fleet=read_fleet(tenant, required_data(rule for rule, _ in rules), now),
            holder=this_process(),
            abandoned=_abandoned((columns for _, columns in rules), now),
            ticks_missed=ticks_missed,
            silent=book.is_silent(now),
            blocked_reason=blocked_reason(tenant),
        )
        decisions = [decide(rule, columns, evaluation) for rule, columns in rules]
    written = in_transaction(lambda: _write(book, decisions, rules, now))
    actions = [action for _, action in decisions if action and action.rule_id in written]
    submitted = [(action, _submit(action, tenant.pk, submit)) for action in actions]
    for action, problem in submitted:
        if problem:
            # Otherwise the rule would be held for ever by an action that never runs.
            outcome = ActionOutcome(problem=f"the action could not start: {problem}")
            record_outcome(action, outcome, now)
    return len(actions)


def _submit(action: RuleAction, tenant_id: int, submit: Submit) -> str:
    """Why the action could not start, or empty; a thread may not be available."""
    try:
        submit(action, tenant_id)
    except Exception as error:
        log.exception("rule.not_begun", rule=action.rule.name)
        return str(error) or type(error).__name__
    return ""


# --- rows -----------------------------------------------------------------------------------


def _rules_to_evaluate(
    tenant: Tenant, now: datetime, *, every_rule: bool
) -> list[tuple[Rule, RuleColumns]]:
    """Rules that are due, have failed or have a running action, in the order of the file.

    Rows of rules that were removed from the file are deleted once no process performs them.
    """
    selected = ", ".join(select_columns(_COLUMNS))
    condition = "" if every_rule else _NEEDS_EVALUATION
    values = [tenant.pk, *([] if every_rule else [to_database_time(now)])]
    rows = fetch_all(_RULES.format(columns=selected, filter=condition), values)
    if not rows:
        return []
    names, texts, *columns = zip(*rows, strict=True)
    read = (
        from_database_times(column) if name in _TIMES else column
        for name, column in zip(_COLUMNS, columns, strict=True)
    )
    read_rules = list(map(RuleColumns, *read))
    delete_removed_rules([one for one in read_rules if one.next_due_at is None], now)
    return [
        (rule, one)
        for name, text, one in zip(names, texts, read_rules, strict=True)
        if one.next_due_at is not None and (rule := _rule(name, text))
    ]


@lru_cache(maxsize=8192)
def _rule(name: str, text: str) -> Rule | None:
    """The parsed rule; one that cannot be parsed any more is logged once and left out."""
    rule = parse_stored(text)
    if rule is None:
        advice = f"save {FILE_NAME} again"
        log.warning("rule.not_understood", rule=name, text=printable_line(text), advice=advice)
    return rule and replace(rule, name=name)


def _abandoned(rules: Iterable[RuleColumns], now: datetime) -> frozenset[int]:
    """Ids of rules whose performing process is gone."""
    held = (one for one in rules if one.held_by)
    return frozenset(one.id for one in held if is_gone(one.held_by, one.held_until, now))


def _write(
    book: RuleBook,
    decisions: Sequence[Decision],
    rules: Sequence[tuple[Rule, RuleColumns]],
    now: datetime,
) -> set[int]:
    """Write the decisions; returns the ids of rules that have not changed since they were read.

    Another beat or a reload may have changed a rule meanwhile.
    """
    # The book first: a reload locks the book before the rules, too.
    if rules or book.ticked_at is None or RuleState.objects.filter(tenant=book.tenant_id).exists():
        RuleBook.objects.filter(pk=book.pk).update(ticked_at=now)
    changed = [
        (action, new, read)
        for (new, action), (_, read) in zip(decisions, rules, strict=True)
        if new != read
    ]
    # Two groups, because the rows of each change the same columns.
    fired = [(new, read) for action, new, read in changed if action]
    other = [(new, read) for action, new, read in changed if not action]
    return update_many("drover_rule", _COLUMN_TYPES, (fired, other))


def blocked_reason(tenant: Tenant) -> str:
    """Budgets do not keep rules from acting."""
    blocks = [block for block in find_blocks(tenant=tenant) if block.reason != "budget"]
    return blocks[0].text if blocks else ""


# --- crashes --------------------------------------------------------------------------------


def _may_be_enabled(book: RuleBook, source: RulesSource, started_at: datetime | None) -> bool:
    """Whether since the crash the file has changed or Drover has been started."""
    assert book.disabled_at is not None
    started = started_at is not None and started_at > book.disabled_at
    return started or source.fingerprint != book.crash_fingerprint


def _record_crash(book: RuleBook, source: RulesSource, error: str, now: datetime) -> None:
    def change() -> None:
        row = RuleBook.objects.filter(pk=book.pk)
        again = source.fingerprint == book.crash_fingerprint
        crashes = book.crashes + 1 if again and not book.disabled_at else 1
        disable = crashes >= MAX_CRASHES
        row.update(
            crashes=crashes,
            crash=error[:500],
            crash_fingerprint=source.fingerprint,
            disabled_at=now if disable else None,
        )
        if disable:
            detail = f"after {crashes} failed evaluations in a row: {error}"
            journal.record(
                journal.JournalEntry("rules.disabled", now, book.tenant_id, detail=detail)
            )

    in_transaction(change)


def _enable(book: RuleBook) -> None:
    columns = {"crashes": 0, "crash": "", "crash_fingerprint": "", "disabled_at": None}
    in_transaction(lambda: RuleBook.objects.filter(pk=book.pk).update(**columns))
