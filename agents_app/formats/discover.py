"""Recognises the format of a project directory and reads its agents, whatever the format."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_app.formats.action_llama import ActionLlama
from agents_app.formats.herdctl import find_config, only_in_files, read_fleet
from agents_app.formats.report import ReportLine
from agents_app.rules.language import CREW_DIRECTORY, FILE_NAME, rules_file_label
from agents_app.skills import (
    Discovery,
    ProjectSpec,
    SkillError,
    discover_project,
    find_agent_directories,
    read_config,
)

DROVER, ACTION_LLAMA, HERDCTL, METATEAM = "drover", "action-llama", "herdctl", "metateam"
_CREW_STATE = f"{CREW_DIRECTORY}/scheduler.state.json"
_PERSONAS = f"{CREW_DIRECTORY}/personas"


@dataclass(frozen=True, slots=True)
class ProjectDiscovery(Discovery):
    """The content of a project of any format."""

    format: str = DROVER
    report: tuple[ReportLine, ...] = ()
    # Files that were read and that a watch of the directory may not notice, and missing ones.
    files: tuple[Path, ...] = ()
    # The environment variables that the files refer to.
    variables: frozenset[str] = frozenset()
    # Variables that a file of the project sets and the environment does not.
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_project(
    project: Path,
    last_good: ProjectSpec | None = None,
    server: Mapping[str, str] | None = None,
) -> ProjectDiscovery:
    """Read the agents of a project directory and collect all errors; never raises.

    `server` are the environment variables, by default those of this process.
    """
    root = project.resolve()
    env = os.environ if server is None else server
    config = find_config(root)
    if config:
        return _read_herdctl(root, config, last_good, env)
    return _read_skills(root, last_good, env)


def _read_skills(
    root: Path, last_good: ProjectSpec | None, env: Mapping[str, str]
) -> ProjectDiscovery:
    dialect = ActionLlama(root, env)
    found = discover_project(root, last_good, dialect)
    has_crew = rules_file_label(root).startswith(CREW_DIRECTORY)
    own = METATEAM if has_crew and not (found.agents or found.broken) else DROVER
    return ProjectDiscovery(
        *(found.project, found.agents, found.errors, found.complete, found.config_is_broken),
        format=ACTION_LLAMA if dialect.is_used else own,
        report=(*dialect.report, *_crew_report(root)),
        files=tuple(dialect.files),
    )


def _read_herdctl(
    root: Path, config: Path, last_good: ProjectSpec | None, env: Mapping[str, str]
) -> ProjectDiscovery:
    """config.toml of Drover may stand beside herdctl.yaml, for settings that herdctl lacks."""
    project, config_errors = read_config(root, last_good)
    reader = read_fleet(root, config, project, env)
    agents = tuple(reader.agents[name] for name in sorted(reader.agents))
    return ProjectDiscovery(
        *(project, agents, (*config_errors, *reader.errors), reader.complete, bool(config_errors)),
        format=HERDCTL,
        report=(*reader.report, *_unread_skills(root, config), *_crew_report(root)),
        files=tuple(reader.files),
        variables=frozenset(reader.variables),
        environment=only_in_files(reader.env, env),
    )


def _unread_skills(root: Path, config: Path) -> list[ReportLine]:
    ignored: list[SkillError] = []
    why = f"is not read: {config.name} says which agents the project has"
    advice = f"add the agent to {config.name}, or move the directory to a project without it"
    return [
        ReportLine(f"{directory.relative_to(root).as_posix()}/SKILL.md", 0, "", why, advice)
        for found in find_agent_directories(root, ignored).values()
        for directory in found
    ]


def _crew_report(root: Path) -> list[ReportLine]:
    """What is not used of Metateam's directory."""
    lines = []
    crew = root / CREW_DIRECTORY
    if (root / FILE_NAME).exists() and (crew / FILE_NAME).exists():
        why = f"is not read: the project has {FILE_NAME}"
        lines.append(
            ReportLine(f"{CREW_DIRECTORY}/{FILE_NAME}", 0, "", why, "keep one of the two files")
        )
    if (crew / "scheduler.state.json").exists():
        why = "is not read: Drover keeps the state of rules in its database"
        lines.append(ReportLine(_CREW_STATE, 0, "", why, "the rules begin with a full interval"))
    if (crew / "personas").is_dir():
        why = "is not read: Drover starts agents of its own"
        lines.append(ReportLine(_PERSONAS, 0, "", why, "write agents/NAME/SKILL.md for each"))
    return lines
