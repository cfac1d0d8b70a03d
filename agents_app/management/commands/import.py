"""Imports schedules and projects of other systems as agents, and credentials."""

import os
import pwd
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_tenant
from agents_app.clock import HOST_ZONE, host_zone
from agents_app.conf import CONF, PROGRAM
from agents_app.console import shortened
from agents_app.errors import Refused
from agents_app.formats import (
    DIRECTORY,
    FORMATS,
    STDIN,
    AgentWriter,
    CredentialDirectory,
    FirePreview,
    ImportContext,
    ImportedSchedule,
    ReportLine,
    WrittenAgent,
    open_source,
    preview_fires,
    read_credentials,
    read_source,
)
from agents_app.models import DEFAULT_TENANT, Tenant
from agents_app.secrets import CredentialImport, how_to_set, import_credential

COLUMNS = (
    "source",
    "old schedule",
    "agent",
    "files",
    "new schedule",
    "next fires of the old schedule",
    "next fires in Drover",
)
CREDENTIALS = "credentials"
MOST_LINES = 100
Row = tuple[WrittenAgent, ImportedSchedule | None, FirePreview]


class Command(DroverCommand):
    help = "Import schedules and projects of other systems as agents, disabled at first."
    examples = (
        (
            "import /etc/cron.d --dry-run",
            "Show what would be written, and what has no counterpart.",
        ),
        ("import - --into fleet", "Read the output of `crontab -l` from a pipe."),
        ("import /etc/crontab --enable", "Write the agents enabled, or enable imported ones."),
        ("import jobs.txt --format system-crontab", "A crontab with users, whatever its name."),
        ("import ~/herd --into fleet", "Write the agents of a herdctl project as SKILL.md files."),
        ("import credentials --dry-run", "What is in Action Llama's directory of credentials."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "source",
            metavar="SOURCE",
            help="A file, a directory, - for a pipe, or `credentials`.",
        )
        parser.add_argument(
            "directory",
            nargs="?",
            metavar="DIR",
            help=f"Only with `credentials`: Action Llama's directory (default: ~/{DIRECTORY}).",
        )
        parser.add_argument(
            "--into", metavar="DIR", help="The project directory (default: DROVER_PROJECT)."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Show everything, write nothing."
        )
        parser.add_argument(
            "--enable", action="store_true", help="Write agents enabled instead of with scale 0."
        )
        parser.add_argument(
            "--format",
            choices=tuple(FORMATS),
            metavar="FORMAT",
            help="Default: recognised by its content.",
        )
        self.add_common(parser)

    def handle(self, *, source: str, tenant: str, **options: Any) -> None:
        if source == CREDENTIALS:
            self._import_credentials(tenant, **options)
            return
        if options["directory"] is not None:
            raise Refused(f"one source at a time: import {source}, then {options['directory']}")
        if tenant != DEFAULT_TENANT:
            raise Refused("--tenant is for `import credentials`; name the project with --into")
        self._import_agents(source, **options)

    # --- agents -----------------------------------------------------------------------------

    def _import_agents(
        self, source: str, *, json: bool, dry_run: bool, enable: bool, **options: Any
    ) -> None:
        now = self.now
        project = Path(options["into"]).absolute() if options["into"] else CONF.project
        opened = open_source(source, sys.stdin.buffer.read)
        users = frozenset(each.pw_name for each in pwd.getpwall())
        context = ImportContext(now, HOST_ZONE, users | {"root"})
        name, found = read_source(opened, context, options["format"] or "")
        if FORMATS[name].is_project and opened.id == os.path.realpath(project):
            advice = f"Drover runs it as it is ({PROGRAM} discover shows its agents)"
            raise Refused(f"{source} is the project itself; {advice}")
        writer = AgentWriter(project, opened.id, opened.short_title, enable=enable)
        result = writer.write(found.agents, dry_run=dry_run)
        report, errors = found.report + result.report, found.errors + result.errors
        rows = _rows(result.written, now)
        if json:
            head = {"source": opened.title, "format": name, "into": project, "dry_run": dry_run}
            self.screen.json({**head, **_described(rows, result.written, report, errors)})
        else:
            self.screen.say(f"{FORMATS[name].title} {_source_name(source)} -> {project}")
            self._print(rows, report, errors)
            self._print_count("agents", [one.state for one in result.written], dry_run=dry_run)
            for hint in _hints(result.written):
                self.screen.say(hint)
        if errors:
            sys.exit(1)

    # --- credentials ------------------------------------------------------------------------

    def _import_credentials(
        self, name: str, *, directory: str | None, json: bool, dry_run: bool, **options: Any
    ) -> None:
        if given := [one for one in ("into", "enable", "format") if options[one]]:
            raise Refused(f"--{given[0]} is for agents; leave it out with `import credentials`")
        found = read_credentials(Path(directory) if directory else Path.home() / DIRECTORY)
        tenant = find_tenant(name)
        states = self._set_credentials(tenant, found, dry_run=dry_run)
        if json:
            head = {"directory": found.root, "tenant": tenant.name, "dry_run": dry_run}
            described = [
                {"credential": one, "file": path, "state": state} for path, one, state in states
            ]
            lines = {"report": found.report, "errors": found.errors}
            self.screen.json({**head, "credentials": described, **lines})
        else:
            self.screen.say(f"credentials of Action Llama {found.root} -> tenant {tenant.name}")
            if states:
                self.screen.table(("file", "credential", "state"), states)
            self._print_report(tuple(found.report), tuple(found.errors))
            self._print_count("credentials", [state for *_, state in states], dry_run=dry_run)
        if found.errors:
            sys.exit(1)

    def _set_credentials(
        self, tenant: Tenant, found: CredentialDirectory, *, dry_run: bool
    ) -> list[tuple[str, str, CredentialImport]]:
        """What happened to each credential; values that are refused are among the errors."""
        states = []
        for one in found.credentials:
            try:
                state = import_credential(
                    tenant, one.name, one.values, self.by, self.now, dry_run=dry_run
                )
            except Refused as error:
                found.refuse(one.path, "value", str(error), how_to_set(one.name, tenant.name))
                continue
            if state == "kept":
                why = "another value was set in Drover since; left as it is"
                advice = f"{PROGRAM} credential remove {one.name}, and import again"
                found.remark(one.path, "value", why, advice)
            states.append((one.path, str(one.name), state))
        return states

    # --- output -----------------------------------------------------------------------------

    def _print(
        self, rows: list[Row], report: tuple[ReportLine, ...], errors: tuple[ReportLine, ...]
    ) -> None:
        if rows:
            self.screen.table(COLUMNS, [_cells(*row) for row in rows])
        self._print_report(report, errors)

    def _print_report(self, report: tuple[ReportLine, ...], errors: tuple[ReportLine, ...]) -> None:
        if report:
            self.screen.say(f"\nNot honoured, or different in Drover ({len(report)}):")
            for line in _shown(report):
                self.screen.say(line)
        if errors:
            self.remark(f"Not imported ({len(errors)}):")
            for line in _shown(errors):
                self.remark(line)

    def _print_count(self, what: str, states: Sequence[str], *, dry_run: bool) -> None:
        counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        counted = ", ".join(counts) or "nothing found"
        self.screen.say(f"\n{what}: {counted}{' (dry run: nothing written)' if dry_run else ''}")


def _source_name(source: str) -> str:
    return "from standard input" if source == STDIN else source


def _rows(written: tuple[WrittenAgent, ...], now: datetime) -> list[Row]:
    return [
        (agent, schedule, _fires(agent, schedule, now))
        for agent in written
        for schedule in agent.agent.schedules or (None,)
    ]


def _fires(written: WrittenAgent, schedule: ImportedSchedule | None, now: datetime) -> FirePreview:
    """The fires of a schedule; none of a refused agent, whose expression may be invalid."""
    if schedule is None or written.state == "refused":
        return FirePreview((), ())
    return preview_fires(schedule, now, HOST_ZONE)


def _cells(written: WrittenAgent, schedule: ImportedSchedule | None, fires: FirePreview) -> Any:
    agent = written.agent
    return (
        f"{agent.file}:{agent.line}" if agent.line else agent.file,
        shortened(schedule.old) if schedule else "",
        written.name,
        written.state,
        shortened(schedule.expression) if schedule else "",
        _times(fires.old),
        "the same" if fires.is_same and fires.old else _times(fires.new),
    )


def _times(fires: tuple[datetime, ...]) -> str:
    return ", ".join(f"{fire.astimezone(host_zone()):%Y-%m-%d %H:%M}" for fire in fires)


def _shown(lines: tuple[ReportLine, ...]) -> list[str]:
    shown = [f"  {_said(one)}" for one in lines[:MOST_LINES]]
    more = len(lines) - MOST_LINES
    return [*shown, f"  and {more} more: --json lists all"] if more > 0 else shown


def _said(line: ReportLine) -> str:
    place = f"{line.file}:{line.line}" if line.line else line.file
    return ": ".join(part for part in (place, line.field, f"{line.why}; {line.advice}") if part)


def _hints(written: Sequence[WrittenAgent]) -> list[str]:
    """What to do with agents that were imported disabled, and with schedules of existing agents."""
    disabled = [one.agent for one in written if not one.enabled and one.state != "refused"]
    hints = {
        False: "Imported agents are disabled (scale = 0) until you enable them.",
        True: "Imported schedules are disabled (enabled = false) until you enable them.",
    }
    return [text for kind, text in hints.items() if any(a.is_existing is kind for a in disabled)]


def _described(
    rows: list[Row],
    written: tuple[WrittenAgent, ...],
    report: tuple[ReportLine, ...],
    errors: tuple[ReportLine, ...],
) -> dict[str, object]:
    fires = {id(schedule): preview for _, schedule, preview in rows}
    return {
        "agents": [
            {
                "name": one.name,
                "state": one.state,
                "enabled": one.enabled,
                "file": one.agent.file,
                "line": one.agent.line,
                "harness": one.agent.harness,
                "files": [{"path": file.path, "state": file.state} for file in one.files],
                "schedules": [
                    _schedule(schedule, fires[id(schedule)]) for schedule in one.agent.schedules
                ],
            }
            for one in written
        ],
        "report": list(report),
        "errors": list(errors),
    }


def _schedule(schedule: ImportedSchedule, fires: FirePreview) -> dict[str, object]:
    return {
        "name": schedule.name,
        "old": schedule.old,
        "expression": schedule.expression or None,
        "timezone": schedule.timezone or HOST_ZONE,
        "old_fires": list(fires.old),
        "new_fires": list(fires.new),
        "same_fires": fires.is_same,
    }
