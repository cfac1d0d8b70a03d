"""One look at all rules, every ten seconds; what they say is done elsewhere, and meanwhile."""

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
from agents_app.rules.engine.decide import Decision, Evaluation, RuleAction, Standing, decide
from agents_app.rules.engine.holder import is_gone, this_process
from agents_app.rules.engine.outcome import ActionOutcome, write_down
from agents_app.rules.engine.reload import forget, reload
from agents_app.rules.engine.snapshot import look_at_fleet
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    needs_of,
    nobody_looked,
    parse_stored,
    read_source,
    shown,
)
from agents_app.runs import find_blocks

log = structlog.get_logger("drover.rules")
MOST_CRASHES = 5
Submit = Callable[[RuleAction, int], None]

_READ = Standing._fields
_MOMENTS = frozenset(name for name in _READ if name.endswith(("_at", "_until")))
_RULES = """
SELECT name, text, {columns} FROM drover_rule
WHERE tenant_id = %s{some} ORDER BY line, id"""
_SOME = " AND (next_due_at <= %s OR failures > 0 OR held_by <> '' OR next_due_at IS NULL)"
_TYPES = {
    **dict.fromkeys(("id", "revision", "failures"), "bigint"),
    **dict.fromkeys(_MOMENTS, "timestamptz"),
}
_WRITTEN = {name: _TYPES.get(name, "text") for name in _READ}


def evaluate_rules(now: datetime, project: Path, submit: Submit) -> int:
    """How many rules fired. Never raises but for a database that is away: a look that breaks again
    and again is the last one, until somebody has changed something."""
    source = read_source(project / FILE_NAME)
    book = _book(source)
    if book is None:
        return 0
    started_at = Scheduler.objects.filter(pk=1).values_list("started_at", flat=True).first()
    if book.disabled_at and not _may_try_again(book, source, started_at):
        return 0
    try:
        fired = _tick(book, source, started_at, now, submit)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("rules.look_failed")
        _note_crash(book, source, f"{type(error).__name__}: {error}", now)
        return 0
    if book.crashes or book.disabled_at:
        _enable(book)
    return fired


def _book(source: RulesSource) -> RuleBook | None:
    """With its tenant; where there was never a file nobody needs one."""
    found = RuleBook.objects.filter(tenant__name=DEFAULT_TENANT).select_related("tenant").first()
    if found or not source.fingerprint:
        return found
    tenant = Tenant.objects.filter(name=DEFAULT_TENANT).first()
    if tenant is None:
        return None
    return in_transaction(lambda: RuleBook.objects.get_or_create(tenant=tenant)[0])


def _tick(
    book: RuleBook, source: RulesSource, started_at: datetime | None, now: datetime, submit: Submit
) -> int:
    tenant, place = book.tenant, book.tenant.zone
    if source.fingerprint != book.fingerprint:
        reload(book, source, place, now)
    resumes = nobody_looked(book.ticked_at, started_at, now)
    rules = _rules_to_look_at(tenant, now, all_of_them=resumes)
    decisions: list[Decision] = []
    if rules:
        look = Evaluation(
            now=now,
            last=book.ticked_at or now,
            zone=place,
            fleet=look_at_fleet(tenant, needs_of(rule for rule, _ in rules), now),
            holder=this_process(),
            abandoned=_abandoned((standing for _, standing in rules), now),
            resumes=resumes,
            silent=book.is_silent(now),
            closed=blocked_reason(tenant),
        )
        decisions = [decide(rule, standing, look) for rule, standing in rules]
    moved = in_transaction(lambda: _write(book, decisions, rules, now))
    errands = [errand for _, errand in decisions if errand and errand.rule_id in moved]
    begun = [(errand, _begin(errand, tenant.pk, submit)) for errand in errands]
    for errand, problem in begun:
        if problem:
            # The rule must not be held for ever by nobody.
            write_down(errand, ActionOutcome(problem=f"it could not begin: {problem}"), now)
    return len(errands)


def _begin(errand: RuleAction, tenant_id: int, submit: Submit) -> str:
    """Why it did not begin, if so: there may be no room for another thread."""
    try:
        submit(errand, tenant_id)
    except Exception as error:
        log.exception("rule.not_begun", rule=errand.rule.name)
        return str(error) or type(error).__name__
    return ""


# --- rows -----------------------------------------------------------------------------------


def _rules_to_look_at(
    tenant: Tenant, now: datetime, *, all_of_them: bool
) -> list[tuple[Rule, Standing]]:
    """In the file's order: what is due, has failed, or has something going on.

    What has left the file is no rule any more, and forgotten when nobody does it."""
    some = "" if all_of_them else _SOME
    values = [tenant.pk, *([] if all_of_them else [to_database_time(now)])]
    rows = fetch_all(_RULES.format(columns=", ".join(select_columns(_READ)), some=some), values)
    if not rows:
        return []
    names, texts, *columns = zip(*rows, strict=True)
    read = (
        from_database_times(column) if name in _MOMENTS else column
        for name, column in zip(_READ, columns, strict=True)
    )
    standings = list(map(Standing, *read))
    forget([one for one in standings if one.next_due_at is None], now)
    return [
        (rule, one)
        for name, text, one in zip(names, texts, standings, strict=True)
        if one.next_due_at is not None and (rule := _rule(name, text))
    ]


@lru_cache(maxsize=8192)
def _rule(name: str, text: str) -> Rule | None:
    """One that is not understood any more leaves the others as they are, and is told of once."""
    rule = parse_stored(text)
    if rule is None:
        log.warning("rule.not_understood", rule=name, text=shown(text), advice=f"save {FILE_NAME}")
    return rule and replace(rule, name=name)


def _abandoned(standings: Iterable[Standing], now: datetime) -> frozenset[int]:
    held = (one for one in standings if one.held_by)
    return frozenset(one.id for one in held if is_gone(one.held_by, one.held_until, now))


def _write(
    book: RuleBook,
    decisions: Sequence[Decision],
    rules: Sequence[tuple[Rule, Standing]],
    now: datetime,
) -> set[int]:
    """Those that nobody else has moved since they were read: another beat, or a new file."""
    # The book first, as whoever reads a new file into the rows does.
    if rules or book.ticked_at is None or RuleState.objects.filter(tenant=book.tenant_id).exists():
        RuleBook.objects.filter(pk=book.pk).update(ticked_at=now)
    looked = [
        (errand, new, read)
        for (new, errand), (_, read) in zip(decisions, rules, strict=True)
        if new != read
    ]
    # Apart, because what fires has much in common, and so has what does not.
    fired = [(new, read) for errand, new, read in looked if errand]
    other = [(new, read) for errand, new, read in looked if not errand]
    return update_many("drover_rule", _WRITTEN, (fired, other))


def blocked_reason(tenant: Tenant) -> str:
    """Budgets do not keep rules from acting."""
    blocks = [block for block in find_blocks(tenant=tenant) if block.reason != "budget"]
    return blocks[0].text if blocks else ""


# --- looks that break -----------------------------------------------------------------------


def _may_try_again(book: RuleBook, source: RulesSource, started_at: datetime | None) -> bool:
    """Somebody has saved another text since, or started Drover."""
    assert book.disabled_at is not None
    started = started_at is not None and started_at > book.disabled_at
    return started or source.fingerprint != book.crash_fingerprint


def _note_crash(book: RuleBook, source: RulesSource, error: str, now: datetime) -> None:
    def change() -> None:
        row = RuleBook.objects.filter(pk=book.pk)
        again = source.fingerprint == book.crash_fingerprint
        crashes = book.crashes + 1 if again and not book.disabled_at else 1
        off = crashes >= MOST_CRASHES
        row.update(
            crashes=crashes,
            crash=error[:500],
            crash_fingerprint=source.fingerprint,
            disabled_at=now if off else None,
        )
        if off:
            about = f"after {crashes} looks in a row that broke: {error}"
            journal.record(
                journal.JournalEntry("rules.disabled", now, book.tenant_id, detail=about)
            )

    in_transaction(change)


def _enable(book: RuleBook) -> None:
    columns = {"crashes": 0, "crash": "", "crash_fingerprint": "", "disabled_at": None}
    in_transaction(lambda: RuleBook.objects.filter(pk=book.pk).update(**columns))
