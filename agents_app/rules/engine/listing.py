"""The rules as people see them: a line for each, and one word about all; nothing is changed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import Count, Q

from agents_app.conf import CONF
from agents_app.models import DEFAULT_TENANT, RuleBook, RuleState, Tenant
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    action_text,
    conditions_text,
    parse_stored,
    parsed,
    read_source,
    trigger_text,
)

S = RuleState.Status
NOT_UNDERSTOOD = "not understood"
Tone = Literal["good", "wait", "bad", "none"]


_SAME = (
    *("name", "line", "text", "reason", "failures", "backoff_until"),
    *("evaluated_at", "fired_at", "next_due_at", "exit_code", "tail"),
)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A row, and what its text says; no rule: this version of Drover does not understand it."""

    row: RuleState
    rule: Rule | None

    @property
    def trigger(self) -> str:
        return trigger_text(self.rule.trigger) if self.rule else NOT_UNDERSTOOD

    @property
    def condition(self) -> str:
        return conditions_text(self.rule.conditions) if self.rule else ""

    @property
    def action(self) -> str:
        return action_text(self.rule.action) if self.rule else self.row.text

    @property
    def status(self) -> str:
        """In as few letters as a table has room for: `!3 bk` has failed three times in a row."""
        failing = self.row.status == S.BACKOFF
        return f"!{self.row.failures} bk" if failing else str(self.row.status)

    @property
    def told(self) -> dict[str, Any]:
        """For programs."""
        parts = {"trigger": self.trigger, "condition": self.condition, "action": self.action}
        same = {name: getattr(self.row, name) for name in _SAME}
        return {**same, **parts, "status": str(self.row.status)}


def rule_lines(tenant: Tenant) -> list[RuleLine]:
    """In the order of the file."""
    return [
        line_of(row) for row in RuleState.objects.filter(tenant_id=tenant.pk).order_by("line", "pk")
    ]


def line_of(row: RuleState) -> RuleLine:
    return RuleLine(row, parse_stored(row.text))


def book_of(tenant: Tenant) -> RuleBook:
    """Where nobody has written one yet, an empty one that is not kept."""
    return RuleBook.objects.filter(tenant_id=tenant.pk).first() or RuleBook(tenant=tenant)


def source_of(tenant: Tenant) -> RulesSource:
    """The project's file belongs to its own tenant; others have none."""
    return read_source(CONF.project / FILE_NAME) if tenant.name == DEFAULT_TENANT else RulesSource()


def not_read_yet(tenant: Tenant, book: RuleBook) -> str:
    """That there are rules all the same, where nobody has ever read the file; else nothing."""
    if book.loaded_at or book.disabled_at:
        return ""
    count = len(parsed(source_of(tenant)).rules)
    rules = f"{count} rule{'' if count == 1 else 's'}"
    return f"{rules} in the file, not read yet: is Drover running?" if count else ""


def silence_told(book: RuleBook, now: datetime) -> dict[str, Any]:
    """For programs; of a silence that is over nothing is said."""
    if not book.is_silent(now):
        return {"silent": False, "since": None, "until": None, "by": ""}
    since, until, by = book.silenced_at, book.silent_until, book.silenced_by
    return {"silent": True, "since": since, "until": until, "by": by}


def silence_text(book: RuleBook, now: datetime, until: str) -> str:
    """`until` is the end as the reader's eyes want it."""
    if not book.is_silent(now):
        return "messages are sent"
    end = f"until {until}" if book.silent_until else "until somebody ends it"
    return f"messages are silenced {end} (by {book.silenced_by})"


@dataclass(frozen=True, slots=True)
class Indicator:
    text: str
    tone: Tone
    meaning: str


def indicator(tenant_name: str) -> Indicator:
    """One query, because every page has it."""
    in_file = Q(rules__next_due_at__isnull=False)
    found = (
        Tenant.objects.filter(name=tenant_name)
        .annotate(
            loaded=Count("rules", filter=in_file),
            failing=Count("rules", filter=in_file & Q(rules__status=S.BACKOFF)),
        )
        .values_list("loaded", "failing", "rule_book__disabled_at", "rule_book__errors")
        .first()
    )
    loaded, failing, disabled_at, errors = found or (0, 0, None, None)
    if disabled_at is not None:
        meaning = "Scheduler rules: disabled, because their evaluation failed repeatedly"
        return Indicator("SCH X", "bad", meaning)
    invalid = len(errors or ())
    if not loaded and not invalid:
        return Indicator("SCH --", "none", "Scheduler rules: none")
    parts = [f"{loaded} active"]
    parts += [f"{failing} in backoff after failures"] if failing else []
    parts += [f"{invalid} line{'' if invalid == 1 else 's'} with errors"] if invalid else []
    meaning = f"Scheduler rules: {', '.join(parts)}"
    if problems := failing + invalid:
        return Indicator(f"SCH {loaded} !{problems}", "wait", meaning)
    return Indicator(f"SCH {loaded}", "good", meaning)
