"""The agents of a program: tables with the fields of SKILL.md, or a project directory."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agents_app.conf import CONF
from agents_app.errors import SchedulerError
from agents_app.formats import read_project
from agents_app.installation import create_private_directory
from agents_app.models import SKILL_FILE
from agents_app.skills import AgentSpec, Discovery, ProjectSpec, SkillError, parse_agent_table

Agents = str | Path | Iterable[Mapping[str, Any]]
NO_COMMAND = "no command: set `command` or `harness`, or give the scheduler `on_trigger`"
# Fields of a table that a SKILL.md has in its name and body.
NAME, INSTRUCTIONS, DIRECTORY = "name", "instructions", "directory"


def read_agents(agents: Agents, *, needs_command: bool) -> tuple[Discovery, Path]:
    """The agents and the directory of their project; raises SchedulerError with all errors.

    Agents need a command unless the program executes their runs itself.
    """
    if isinstance(agents, str | Path):
        return _read_directory(Path(agents)), Path(agents).resolve()
    if isinstance(agents, Mapping) or not isinstance(agents, Iterable):
        raise SchedulerError(
            f"agents: expected a list of tables or a project directory, not {_kind(agents)}"
        )
    problems: list[str] = []
    specs: dict[str, AgentSpec] = {}
    for number, table in enumerate(agents):
        label = f"agents[{number}]"
        try:
            spec = _read_table(table, label, needs_command=needs_command)
            if spec.name in specs:
                raise SchedulerError(f"{label}: another agent has the name {spec.name!r}")
            specs[spec.name] = spec
        except (SchedulerError, SkillError) as error:
            problems.append(str(error))
    if problems:
        raise SchedulerError("\n".join(problems))
    return Discovery(ProjectSpec(), tuple(specs.values()), ()), CONF.project


def _read_directory(project: Path) -> Discovery:
    if not project.is_dir():
        raise SchedulerError(f"agents: {project} is not a directory; give a project directory")
    discovery = read_project(project)
    if discovery.errors:
        raise SchedulerError("\n".join(str(error) for error in discovery.errors))
    return discovery


def _read_table(table: object, label: str, *, needs_command: bool) -> AgentSpec:
    fields = _plain(table, label)
    name, instructions = fields.pop(NAME, None), fields.pop(INSTRUCTIONS, "")
    if not isinstance(name, str):
        raise SchedulerError(f"{label}: `name` is missing or no text; give the agent a name")
    label = f"{label} ({name})"
    if not isinstance(instructions, str):
        raise SchedulerError(f"{label}: instructions: must be text, not {_kind(instructions)}")
    directory = fields.pop(DIRECTORY, None)
    # Of the parser's checks, that of the name keeps the path below the data directory.
    path = CONF.data / "agents" / name if directory is None else _existing(directory, label)
    spec = parse_agent_table(name, fields, instructions, path / SKILL_FILE, label=label)
    if needs_command and not spec.command:
        raise SchedulerError(f"{label}: {NO_COMMAND}")
    create_private_directory(path)
    return spec


def _existing(directory: object, label: str) -> Path:
    if not isinstance(directory, str) or not Path(directory).is_dir():
        raise SchedulerError(f"{label}: directory: {directory!r} is not an existing directory")
    return Path(directory).resolve()


def _plain(table: object, label: str) -> dict[str, Any]:
    """A copy with values of JSON only, which the database can store."""
    if not isinstance(table, Mapping):
        raise SchedulerError(f"{label}: expected a table with `name`, not {_kind(table)}")
    try:
        text = json.dumps(dict(table), allow_nan=False, ensure_ascii=False, default=_path_text)
        text.encode()
    except (TypeError, ValueError) as error:
        raise SchedulerError(f"{label}: values must be texts, numbers and lists: {error}") from None
    if "\\u0000" in text:
        raise SchedulerError(f"{label}: a NUL character cannot be used in a value")
    plain: dict[str, Any] = json.loads(text)
    return plain


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is {_kind(value)}")


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
