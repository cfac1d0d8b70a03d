"""Imports the agents of a herdctl or Action Llama project into another project."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agents_app.conf import PROGRAM
from agents_app.errors import Refused
from agents_app.formats.base import Format
from agents_app.formats.discover import ACTION_LLAMA, ProjectDiscovery, read_project
from agents_app.formats.herdctl import find_config
from agents_app.formats.imported import ImportContext, Imported, looks_secret
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import Source, printable
from agents_app.formats.spec_agents import SpecAgents
from agents_app.names import canonical
from agents_app.rules.language import CREW_DIRECTORY, FILE_NAME
from agents_app.skills import (
    Document,
    SkillError,
    find_agent_directories,
    read_source,
    read_toml,
)

_CONFIG_FILES = ("config.toml", ".env.toml")
# Settings that no field of an agent has; the others are written into each agent.
_OF_PROJECTS = {
    *("scale", "resource_lock_timeout", "history_retention_days", "gateway", "webhooks"),
    *("notify", "budget"),
}
_OF_AGENTS = {"SKILL.md", "config.toml"}
_MOST_FILES = 20
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _root_of(source: Source) -> Path:
    if source.path is None or not source.is_directory:
        raise Refused(f"{source.title} is not a directory; name the directory of the project")
    return source.path


def _is_herdctl(source: Source, _context: ImportContext) -> bool:
    return source.is_directory and find_config(_root_of(source)) is not None


def _is_action_llama(source: Source, _context: ImportContext) -> bool:
    """Other programs have a config.toml, too: without agents it is another project."""
    if not source.is_directory or not find_agent_directories(_root_of(source), []):
        return False
    return read_project(_root_of(source)).format == ACTION_LLAMA


def _read(source: Source, context: ImportContext) -> Imported:
    root = _root_of(source)
    found, hidden = _read_without_secrets(root)
    agents = SpecAgents(root, context, hidden)
    imported = tuple(agents.agent(spec) for spec in found.agents)
    report = (
        *found.report,
        *agents.report,
        *_references(found, root, hidden),
        *_project_settings(root),
        *_other_files(found, root),
    )
    return Imported(imported, report, tuple(_error(error) for error in found.errors))


def _error(error: SkillError) -> ReportLine:
    """The field is the beginning of the reason, if the error is about one."""
    field, colon, why = error.reason.partition(": ")
    if not colon or not _FIELD.fullmatch(field):
        field, why = "file", error.reason
    return ReportLine(error.path, error.line or 0, field, why, "correct it, and import again")


# --- values that must not be copied ---------------------------------------------------------


def _read_without_secrets(root: Path) -> tuple[ProjectDiscovery, list[str]]:
    """The project; `${NAME}` stays as it is if a variable of that name may be a secret."""
    found = read_project(root)
    hidden = sorted(name for name in found.variables if looks_secret(name))
    if not hidden:
        return found, []
    server = {**os.environ, **{name: f"${{{name}}}" for name in hidden}}
    return read_project(root, server=server), hidden


def _references(found: ProjectDiscovery, root: Path, hidden: list[str]) -> Iterator[ReportLine]:
    """The lines with a variable whose value is not copied."""
    if not hidden:
        return
    names = re.compile(r"\$\{(" + "|".join(map(re.escape, hidden)) + r")\b")
    for path in found.files:
        try:
            source = read_source(root, path)
        except (SkillError, ValueError):  # reported by the reader of the project
            continue
        for number, line in enumerate(source.text.split("\n") if source else (), 1):
            for name in dict.fromkeys(names.findall(line)):
                why = "the value of the variable may be a secret and is not copied"
                advice = f"store it with `{PROGRAM} credential set {name.lower()}`"
                yield ReportLine(path.relative_to(root).as_posix(), number, name, why, advice)


# --- what is not part of an agent -----------------------------------------------------------


def _project_settings(root: Path) -> Iterator[ReportLine]:
    for name in _CONFIG_FILES:
        try:
            source = read_source(root, root / name)
            document = read_toml(source) if source else None
        except SkillError:
            continue  # among the errors of the project
        for key in document.data if document else ():
            if document and canonical(key) in _OF_PROJECTS:
                why = "is a setting of the whole project, and only agents are imported"
                advice = "copy it into config.toml of the project"
                yield ReportLine(name, _first_line(document, key), key, why, advice)
    for name in (FILE_NAME, f"{CREW_DIRECTORY}/{FILE_NAME}"):
        if (root / name).exists():
            advice = f"copy the rules into {FILE_NAME} of the project"
            yield ReportLine(name, 0, "file", "rules are not imported", advice)


def _first_line(document: Document, key: str) -> int:
    """The line of a field, or of the first table in it: `[webhooks.shop]` is one of `webhooks`."""
    lines = [place.line for at, place in document.places.items() if at[0] == canonical(key)]
    return min((line for line in lines if line), default=0)


def _other_files(found: ProjectDiscovery, root: Path) -> Iterator[ReportLine]:
    """Files beside SKILL.md; agents of herdctl have none of their own."""
    if found.format != ACTION_LLAMA:
        return
    why, advice = "is not copied: only SKILL.md and config.toml are", "copy it into the project"
    if (root / "shared").is_dir():
        yield ReportLine("shared", 0, "directory", why, advice)
    for spec in found.agents:
        try:
            names = sorted({entry.name for entry in os.scandir(spec.directory)} - _OF_AGENTS)
        except OSError:
            continue  # removed since it was read
        for name in names[:_MOST_FILES]:
            path = (spec.directory / name).relative_to(root).as_posix()
            yield ReportLine(printable(path), 0, "file", why, advice)


HERDCTL_PROJECT = Format("herdctl project", _is_herdctl, _read, is_project=True)
ACTION_LLAMA_PROJECT = Format("Action Llama project", _is_action_llama, _read, is_project=True)
