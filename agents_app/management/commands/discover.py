"""Shows the agents of the project directory."""

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.accounts import project_problem
from agents_app.cli import DroverCommand, find_tenant
from agents_app.conf import CONF, PROGRAM
from agents_app.console import shortened
from agents_app.errors import Refused
from agents_app.formats import ProjectDiscovery, ReportLine, read_project
from agents_app.models import DEFAULT_TENANT
from agents_app.project import find_missing_sources, sync_project
from agents_app.rules.language import (
    RulesSource,
    problem_with_position,
    read_project_rules,
    read_source,
    rules_file,
    rules_file_label,
)
from agents_app.skills import AgentSpec, SkillError

COLUMNS = ("agent", "scale", "schedules", "command", "description")
FORMATS = {
    "drover": "Drover",
    "action-llama": "Action Llama",
    "herdctl": "herdctl",
    "metateam": "Metateam",
}


class Command(DroverCommand):
    help = "Read the project directory and show its format, its agents and errors."
    examples = (
        ("discover", "Agents and errors of the files, and what is not honoured."),
        ("discover --sync", "Write the definitions to the database now."),
        ("discover --tenant acme", "Read the project of another tenant."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--sync", action="store_true", help="Write the definitions to the database."
        )

    def handle(self, *, tenant: str, sync: bool, json: bool, **_: Any) -> None:
        project = _project_of(tenant)
        found = self._read(tenant, project, sync=sync)
        # After the synchronization, and without effect on it: the agents stay defined.
        missing = find_missing_sources(found, project, tenant)
        found = replace(found, errors=(*found.errors, *missing))
        rule_errors = _read_rules(tenant, project).errors
        if json:
            about = {"tenant": tenant, "project": project, "rules": _rules_label(project)}
            errors = {"rule_errors": rule_errors}
            self.screen.json(about | described(found) | errors | {"synced": sync})
        else:
            self._print(found, project)
            for error in rule_errors:
                self.remark(f"{rules_file_label(project)}: {problem_with_position(error)}")
        if found.errors or rule_errors:
            sys.exit(1)

    def _read(self, tenant: str, project: Path, *, sync: bool) -> ProjectDiscovery:
        if sync:
            return sync_project(project, self.now, tenant)
        # The environment variables belong to the default tenant.
        return read_project(project, server=None if tenant == DEFAULT_TENANT else {})

    def _print(self, found: ProjectDiscovery, project: Path) -> None:
        count = len(found.agents)
        agents = f"{count} agent{'' if count == 1 else 's'}"
        self.screen.say(f"project {project} (format {FORMATS[found.format]}): {agents}")
        if found.agents:
            self.screen.table(COLUMNS, [agent_row(spec) for spec in found.agents])
        if rules := _rules_label(project):
            self.screen.say(f"rules: {rules}")
        if found.report:
            self.screen.say(f"not honoured ({len(found.report)}):")
            for line in found.report:
                self.screen.say(f"  {report_text(line)}")
        for error in each(found):
            self.remark(str(error))


def _read_rules(tenant: str, project: Path) -> RulesSource:
    """As beat reads them: only the rules file of the default tenant may be a link."""
    if tenant == DEFAULT_TENANT:
        return read_source(rules_file(project))
    return read_project_rules(project)


def _rules_label(project: Path) -> str | None:
    """The rules file of the project, if there is one."""
    label = rules_file_label(project)
    return label if (project / label).exists() else None


def _project_of(tenant_name: str) -> Path:
    """Raises Refused if the tenant has no project that can be read. The project of the default
    tenant is read without a database, too."""
    if tenant_name == DEFAULT_TENANT:
        return CONF.project
    tenant = find_tenant(tenant_name)
    project = tenant.project_directory
    if project is None:
        raise Refused(
            f"{tenant} has no project: set one with {PROGRAM} tenant project {tenant} DIR"
        )
    if problem := project_problem(tenant):
        raise Refused(problem)
    return project


def report_text(line: ReportLine) -> str:
    place = f"{line.file}:{line.line}" if line.line else line.file
    return f"{place}: {line.field + ': ' if line.field else ''}{line.why}; {line.advice}"


def agent_row(spec: AgentSpec) -> tuple[object, ...]:
    schedules = ", ".join(s.expression for s in spec.schedules if s.enabled)
    command = shortened(" ".join(spec.command), 40)
    return spec.name, spec.scale, schedules, command, shortened(spec.description)


def described(found: ProjectDiscovery) -> dict[str, object]:
    return {
        "format": found.format,
        "agents": [agent_described(spec) for spec in found.agents],
        "errors": [
            {"agent": e.agent, "path": e.path, "line": e.line, "reason": e.reason}
            for e in each(found)
        ],
        "not_honoured": [asdict(line) for line in found.report],
    }


def agent_described(spec: AgentSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "path": spec.source_path,
        "description": spec.description,
        "command": list(spec.command),
        "scale": spec.scale,
        "timeout_seconds": spec.timeout_seconds,
        "schedules": [
            {
                "name": s.name,
                "expression": s.expression,
                "timezone": s.timezone,
                "enabled": s.enabled,
            }
            for s in spec.schedules
        ],
        "webhooks": [webhook.source for webhook in spec.webhooks],
    }


def each(found: ProjectDiscovery) -> list[SkillError]:
    return [one for error in found.errors for one in error.each]
