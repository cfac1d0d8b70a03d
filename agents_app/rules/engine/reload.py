"""Loads the rules file into rows: unchanged rules keep their state, new and changed ones reset."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog
from django.db.models import F

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import RuleBook, RuleState
from agents_app.rules.engine.decide import RuleColumns
from agents_app.rules.engine.holder import is_gone
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    next_due,
    parse_source,
    problem_with_position,
    rule_text,
)

log = structlog.get_logger("drover.rules")
# Stored in the place of a fingerprint; no hash is equal to it.
BLANK_FINGERPRINT = "blank at the last look"


def reload(book: RuleBook, source: RulesSource, zone: ZoneInfo, now: datetime) -> None:
    """Load the file in one transaction.

    A file that cannot be read changes only the stored errors; the rules stay. A blank or missing
    file removes the rules only if it is blank at two ticks in a row.
    """
    if source.is_blank and book.fingerprint != BLANK_FINGERPRINT:
        in_transaction(lambda: _remember_blank(book))
        return
    errors = source.errors

    def change() -> bool:
        # Locked: of several beats that see the change, one loads it.
        current = RuleBook.objects.select_for_update().get(pk=book.pk)
        if current.fingerprint == source.fingerprint:
            return False
        if not source.problem:
            _sync(book.tenant_id, parse_source(source).rules, zone, now)
        RuleBook.objects.filter(pk=book.pk).update(
            fingerprint=source.fingerprint, errors=errors, loaded_at=now
        )
        if not errors or errors == current.errors:
            return False
        journal.record(
            journal.JournalEntry("rules.invalid", now, book.tenant_id, detail=_first_error(source))
        )
        return True

    if in_transaction(change):
        # After the commit, so that the locks are not held while the log is written.
        for error in errors:
            log.warning("rules.line_invalid", **error)
    file = parse_source(source)
    log.info("rules.loaded", rules=len(file.rules), errors=len(file.errors) or len(errors))


def _remember_blank(book: RuleBook) -> None:
    """Note that the file was blank at this tick, in the row so that it survives a restart.

    Editors truncate or remove a file before they write it: the rules must keep their state.
    """
    unchanged = RuleBook.objects.filter(pk=book.pk, fingerprint=book.fingerprint)
    unchanged.update(fingerprint=BLANK_FINGERPRINT)


def _first_error(source: RulesSource) -> str:
    """The first error, and the number of further ones."""
    first, count = source.errors[0], len(parse_source(source).errors)
    more = f", and {count - 1} more" if count > 1 else ""
    text = ": ".join(filter(None, (FILE_NAME, problem_with_position(first), first["raw"][:200])))
    return text[:400] + more


# --- rows -----------------------------------------------------------------------------------


def _sync(tenant_id: int, rules: Iterable[Rule], zone: ZoneInfo, now: datetime) -> None:
    # Locked by id, in the same order as in every other statement that locks several rules.
    rows = RuleState.objects.filter(tenant=tenant_id).order_by("pk").select_for_update()
    known = {row.name: row for row in rows}
    named = {rule.name: rule for rule in rules}
    _remove(known, named)
    new = []
    for name, rule in named.items():
        row = known.get(name)
        if row is None:
            text, due = rule_text(rule), next_due(rule.trigger, now, zone)
            new.append(
                RuleState(
                    tenant_id=tenant_id, name=name, text=text, line=rule.line, next_due_at=due
                )
            )
        elif row.text != rule_text(rule) or row.next_due_at is None:
            _reset(row, rule, next_due(rule.trigger, now, zone))
        elif row.line != rule.line:
            RuleState.objects.filter(pk=row.pk).update(line=rule.line)
    RuleState.objects.bulk_create(new, batch_size=500)


def _remove(known: Mapping[str, RuleState], named: Mapping[str, Rule]) -> None:
    gone = [row for name, row in known.items() if name not in named]
    RuleState.objects.filter(pk__in=[row.pk for row in gone if not row.held_by]).delete()
    # A rule whose action is still running is deleted when the action ends.
    running = RuleState.objects.filter(pk__in=[row.pk for row in gone if row.held_by])
    running.update(next_due_at=None, revision=F("revision") + 1)


def delete_removed_rules(removed: Iterable[RuleColumns], now: datetime) -> None:
    """Delete rules that were removed from the file and whose performing process is gone."""
    gone = [one for one in removed if is_gone(one.held_by, one.held_until, now)]
    if gone:
        # Conditional: another beat may have loaded one of the rules again meanwhile.
        same = RuleState.objects.filter(next_due_at=None, pk__in=[one.id for one in gone])
        in_transaction(same.filter(held_by__in=[one.held_by for one in gone]).delete)


def _reset(row: RuleState, rule: Rule, due: datetime) -> None:
    """Reset a changed rule; a running action of the old text continues and holds the rule."""
    fresh: dict[str, object] = {} if row.held_by else {"status": RuleState.Status.WAITING}
    RuleState.objects.filter(pk=row.pk).update(
        **fresh,
        text=rule_text(rule),
        line=rule.line,
        next_due_at=due,
        evaluated_at=None,
        fired_at=row.fired_at if row.held_by else None,
        reason="",
        failures=0,
        backoff_until=None,
        seen="",
        exit_code=None,
        tail="",
        revision=F("revision") + 1,
    )
