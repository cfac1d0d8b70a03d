"""The file becomes rows: what is unchanged carries on, what is new or other begins afresh."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog
from django.db.models import F

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import RuleBook, RuleState
from agents_app.rules.engine.decide import Standing
from agents_app.rules.engine.holder import is_gone
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    next_due,
    parsed,
    placed,
    rule_text,
)

log = structlog.get_logger("drover.rules")
# In the place of a fingerprint; none is like it.
BLANK_ONCE = "blank at the last look"


def reload(book: RuleBook, source: RulesSource, zone: ZoneInfo, now: datetime) -> None:
    """In one transaction: nobody sees half of a file. A file that cannot be read changes nothing
    but what people are told of it; one without a word must be so for two looks in a row."""
    if source.is_blank and book.fingerprint != BLANK_ONCE:
        in_transaction(lambda: _remember_blank(book))
        return
    errors = source.errors

    def change() -> bool:
        # Of several beats that see the change one makes it; the others find it made.
        current = RuleBook.objects.select_for_update().get(pk=book.pk)
        if current.fingerprint == source.fingerprint:
            return False
        if not source.problem:
            _sync(book.tenant_id, parsed(source).rules, zone, now)
        RuleBook.objects.filter(pk=book.pk).update(
            fingerprint=source.fingerprint, errors=errors, loaded_at=now
        )
        if not errors or errors == current.errors:
            return False
        journal.record(
            journal.JournalEntry("rules.invalid", now, book.tenant_id, detail=_told(source))
        )
        return True

    if in_transaction(change):
        # Whoever waits for the rows does not wait for the log as well.
        for error in errors:
            log.warning("rules.line_invalid", **error)
    file = parsed(source)
    log.info("rules.loaded", rules=len(file.rules), errors=len(file.errors) or len(errors))


def _remember_blank(book: RuleBook) -> None:
    """Editors empty or remove a file before they write it: its rules must not lose what they are.

    In the row, so that a restart between the two looks changes nothing.
    """
    unchanged = RuleBook.objects.filter(pk=book.pk, fingerprint=book.fingerprint)
    unchanged.update(fingerprint=BLANK_ONCE)


def _told(source: RulesSource) -> str:
    """The first that is wrong, and how many more."""
    first, count = source.errors[0], len(parsed(source).errors)
    more = f", and {count - 1} more" if count > 1 else ""
    about = ": ".join(filter(None, (FILE_NAME, placed(first), first["raw"][:200])))
    return about[:400] + more


# --- rows -----------------------------------------------------------------------------------


def _sync(tenant_id: int, rules: Iterable[Rule], zone: ZoneInfo, now: datetime) -> None:
    # Locked in one order, as whoever else writes several of them.
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
            _begin_afresh(row, rule, next_due(rule.trigger, now, zone))
        elif row.line != rule.line:
            RuleState.objects.filter(pk=row.pk).update(line=rule.line)
    RuleState.objects.bulk_create(new, batch_size=500)


def _remove(known: Mapping[str, RuleState], named: Mapping[str, Rule]) -> None:
    gone = [row for name, row in known.items() if name not in named]
    RuleState.objects.filter(pk__in=[row.pk for row in gone if not row.held_by]).delete()
    # What it began may end; then nobody knows it any more.
    still = RuleState.objects.filter(pk__in=[row.pk for row in gone if row.held_by])
    still.update(next_due_at=None, revision=F("revision") + 1)


def forget(left: Iterable[Standing], now: datetime) -> None:
    """Of the rules that have left the file those whose beat died before what they began ended."""
    dead = [one for one in left if is_gone(one.held_by, one.held_until, now)]
    if dead:
        # Another beat may have put one of them back to work meanwhile.
        same = RuleState.objects.filter(next_due_at=None, pk__in=[one.id for one in dead])
        in_transaction(same.filter(held_by__in=[one.held_by for one in dead]).delete)


def _begin_afresh(row: RuleState, rule: Rule, due: datetime) -> None:
    """What the old rule began goes on, and the new one waits for its end like any other."""
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
