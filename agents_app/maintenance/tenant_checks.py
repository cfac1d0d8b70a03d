"""The check of `manage.py doctor` of other tenants than the default one: project and rules."""

from collections.abc import Iterator
from datetime import datetime

from agents_app.accounts import project_problem
from agents_app.conf import PROGRAM
from agents_app.formats import read_project
from agents_app.maintenance.findings import OK, WARNING, WRONG, CheckResults
from agents_app.models import DEFAULT_TENANT, Agent, Tenant
from agents_app.rules.engine import file_label, source_of
from agents_app.rules.language import parse_source, problem_with_position, rule_warnings

# Findings of one kind and tenant; `manage.py discover --tenant NAME` lists all.
MOST_LISTED = 10


def check_tenants(_: datetime) -> CheckResults:
    others = list(Tenant.objects.exclude(name=DEFAULT_TENANT).order_by("name"))
    for tenant in others:
        if tenant.disabled_at:
            yield WARNING, f"{tenant}: disabled", f"{PROGRAM} tenant enable {tenant}"
        elif tenant.project_directory is None:
            yield OK, f"{tenant}: no project directory", ""
        elif problem := project_problem(tenant):
            yield WRONG, f"{tenant}: {problem}", "what was read before stays in use"
        else:
            yield from _check_project(tenant)
            yield from _check_rules(tenant)
    if others:
        yield OK, f"{len(others)} beside {DEFAULT_TENANT}", ""


def _check_project(tenant: Tenant) -> CheckResults:
    directory = tenant.project_directory
    assert directory is not None
    found = read_project(directory, server={})
    problems = [str(one) for error in found.errors for one in error.each]
    # Also what the last synchronization found, for example that the directory is slow.
    problems += [text for text in tenant.definition_errors if text not in problems]
    advice = "fix the file; the last valid definition stays in use"
    for problem in _some(problems):
        yield WRONG, f"{tenant}: {problem}", advice
    if not problems:
        other = "" if found.format == "drover" else f" (format {found.format})"
        verdict, advice = (OK, "") if found.agents else (WARNING, "add agents/<name>/SKILL.md")
        yield verdict, f"{tenant}: {directory}{other}: {len(found.agents)} agents", advice
    if found.report:
        detail = f"{tenant}: {len(found.report)} fields or files of {found.format} are not honoured"
        yield WARNING, detail, f"{PROGRAM} discover --tenant {tenant} lists them"


def _check_rules(tenant: Tenant) -> CheckResults:
    source, name = source_of(tenant), file_label(tenant)
    advice = f"fix {name}; {PROGRAM} rules test --tenant {tenant} shows the line"
    errors = [f"{problem_with_position(error)} ({name})" for error in source.errors]
    for problem in _some(errors):
        yield WRONG, f"{tenant}: {problem}", advice
    agents = Agent.objects.filter(tenant=tenant, removed_at__isnull=True)
    known = set(agents.values_list("name", flat=True))
    warnings = [
        f"{name}, line {rule.line}: {warning}"
        for rule in parse_source(source).rules
        for warning in rule_warnings(rule, known)
    ]
    for warning in _some(warnings):
        yield WARNING, f"{tenant}: {warning}", f"fix {name}, or add the agent"


def _some(texts: list[str]) -> Iterator[str]:
    yield from texts[:MOST_LISTED]
    if more := len(texts[MOST_LISTED:]):
        yield f"and {more} more of this kind"
