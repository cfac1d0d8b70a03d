"""Reads rules for pages, API and command line: a line per rule, and an indicator for all."""

from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Count, Q

from agents_app.models import DEFAULT_TENANT, RuleBook, RuleState, Tenant
from agents_app.rules.language import (
    FILE_NAME,
    Rule,
    RulesSource,
    action_text,
    conditions_text,
    parse_source,
    parse_stored,
    read_project_rules,
    read_source,
    rules_file,
    rules_file_label,
    trigger_text,
)

S = RuleState.Status
NOT_UNDERSTOOD = "not understood"
Tone = Literal["good", "wait", "bad", "none"]


_ROW_FIELDS = (
    *("name", "line", "text", "reason", "failures", "backoff_until"),
    *("evaluated_at", "fired_at", "next_due_at", "exit_code", "tail"),
)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A row and its parsed text; `rule` is None if this version of Drover cannot parse it."""

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
        """A short form for tables: `!3 bk` is backoff after three failures in a row."""
        failing = self.row.status == S.BACKOFF
        return f"!{self.row.failures} bk" if failing else str(self.row.status)

    @property
    def as_dict(self) -> dict[str, Any]:
        """The representation in the API and in JSON output."""
        parts = {"trigger": self.trigger, "condition": self.condition, "action": self.action}
        fields = {name: getattr(self.row, name) for name in _ROW_FIELDS}
        return {**fields, **parts, "status": str(self.row.status)}


def rule_lines(tenant: Tenant) -> list[RuleLine]:
    """In the order of the file."""
    return [
        line_of(row) for row in RuleState.objects.filter(tenant_id=tenant.pk).order_by("line", "pk")
    ]


def line_of(row: RuleState) -> RuleLine:
    return RuleLine(row, parse_stored(row.text))


def book_of(tenant: Tenant) -> RuleBook:
    """The tenant's row, or an unsaved empty one."""
    return RuleBook.objects.filter(tenant_id=tenant.pk).first() or RuleBook(tenant=tenant)


def source_of(tenant: Tenant) -> RulesSource:
    """The rules file of the tenant's project; empty without a project."""
    project = tenant.project_directory
    if project is None:
        return RulesSource()
    if tenant.name == DEFAULT_TENANT:
        return read_source(rules_file(project))
    return read_project_rules(project)


def file_label(tenant: Tenant) -> str:
    """The name of the tenant's rules file in messages."""
    project = tenant.project_directory
    return rules_file_label(project) if project else FILE_NAME


def unread_file_notice(tenant: Tenant, book: RuleBook) -> str:
    """A notice that the file has rules which no tick has loaded yet, or empty."""
    if book.loaded_at or book.disabled_at:
        return ""
    count = len(parse_source(source_of(tenant)).rules)
    rules = f"{count} rule{'' if count == 1 else 's'}"
    return f"{rules} in the file, not loaded yet: is Drover running?" if count else ""


@dataclass(frozen=True, slots=True)
class Indicator:
    text: str
    tone: Tone
    meaning: str


def indicator(tenant_name: str) -> Indicator:
    """The indicator of the navigation bar; one query, because every page shows it."""
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
