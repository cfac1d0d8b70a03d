"""Finds and reads the agents and the config.toml of a project directory."""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from agents_app.names import agent_name_problem
from agents_app.skills.dialect import Dialect
from agents_app.skills.document import SourceText
from agents_app.skills.errors import SkillError, SourcePlace
from agents_app.skills.files import read_source
from agents_app.skills.parse import parse_project, parse_skill
from agents_app.skills.specs import AgentSpec, ProjectSpec

AGENTS = "agents"
SKILL = "SKILL.md"
CONFIG = "config.toml"


@dataclass(frozen=True, slots=True)
class Discovery:
    """The content of a project; an agent that is neither in `agents` nor broken was removed."""

    project: ProjectSpec
    agents: tuple[AgentSpec, ...]
    errors: tuple[SkillError, ...]
    # False when a directory could not be listed: a missing agent may then still exist.
    complete: bool = True
    # The settings are the last valid ones, or the defaults.
    config_is_broken: bool = False

    @property
    def broken(self) -> dict[str, str]:
        """Agents with errors, and their errors; their last valid definition stays in force."""
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for error in self.errors:
            if error.agent:
                reasons[error.agent].append(str(error))
        return {agent: "\n".join(lines) for agent, lines in reasons.items()}


def discover_project(
    project: Path, last_good: ProjectSpec | None = None, dialect: Dialect | None = None
) -> Discovery:
    """Read every agent and collect all errors; never raises.

    If config.toml does not parse, `last_good` or the defaults are used.
    """
    root = project.resolve()
    spec, config_errors = read_config(root, last_good, dialect)
    errors: list[SkillError] = []
    directories = find_agent_directories(root, errors)
    complete = not errors
    read = [_read_agent(root, found, spec, errors, dialect) for found in directories.values()]
    agents = tuple(agent for agent in read if agent)
    return Discovery(spec, agents, (*config_errors, *errors), complete, bool(config_errors))


def read_config(
    root: Path, last_good: ProjectSpec | None = None, dialect: Dialect | None = None
) -> tuple[ProjectSpec, tuple[SkillError, ...]]:
    """The project's config.toml and its errors; with errors, the last valid settings."""
    try:
        source = read_source(root, root / CONFIG) or SourceText("", root / CONFIG, CONFIG)
        return parse_project(source, dialect), ()
    except SkillError as error:
        return last_good or ProjectSpec(), error.each


def find_agent_directories(root: Path, errors: list[SkillError]) -> dict[str, list[Path]]:
    """Directories with a SKILL.md by name, sorted by name."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for parent in (root / AGENTS, root):
        for directory in _directories(root, parent, errors):
            if directory != root / AGENTS and _has_skill(directory):
                found[directory.name].append(directory)
    return dict(sorted(found.items()))


def _directories(root: Path, parent: Path, errors: list[SkillError]) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            return [Path(entry.path) for entry in entries if _may_be_agent_directory(entry)]
    except FileNotFoundError:
        if parent != root:
            return []  # a project without an agents directory
        reason = "the project directory does not exist; create it or set DROVER_PROJECT"
    except OSError as error:
        reason = f"cannot be listed: {error.strerror}"
    label = parent.relative_to(root).as_posix() if parent != root else str(root)
    errors.append(SkillError(reason, SourcePlace(label)))
    return []


def _may_be_agent_directory(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name == "node_modules":
        return False
    try:
        return entry.is_dir()
    except OSError:
        return False


def _has_skill(directory: Path) -> bool:
    """Whether the directory has a SKILL.md; one that cannot be searched may have one."""
    try:
        os.lstat(directory / SKILL)
    except PermissionError:
        return agent_name_problem(directory.name) is None
    except OSError:
        return False
    return True


def _read_agent(
    root: Path,
    found: list[Path],
    project: ProjectSpec,
    errors: list[SkillError],
    dialect: Dialect | None,
) -> AgentSpec | None:
    directory, *others = found
    label = (directory.relative_to(root) / SKILL).as_posix()
    name = directory.name
    try:
        if reason := agent_name_problem(name):
            raise SkillError(reason, SourcePlace(_printable(label)))
        if others:
            second = (others[0].relative_to(root) / SKILL).as_posix()
            raise SkillError(
                f"agent {name!r} is also defined in {second}; remove one", SourcePlace(label)
            )
        return _parse_agent(root, directory, project, dialect)
    except SkillError as error:
        known = None if agent_name_problem(name) else name
        errors.extend(SkillError(one.reason, one.place, agent=known) for one in error.each)
        return None


def _parse_agent(
    root: Path, directory: Path, project: ProjectSpec, dialect: Dialect | None
) -> AgentSpec | None:
    skill = read_source(root, directory / SKILL)
    if skill is None:
        return None  # removed since the listing
    config = read_source(root, directory / CONFIG)
    spec = parse_skill(skill, name=directory.name, project=project, config=config, dialect=dialect)
    if not spec.command:
        reason = "no command: set `command` or `harness` here or in the project's config.toml"
        raise SkillError(reason, SourcePlace(skill.name))
    return spec


def _printable(label: str) -> str:
    """Escape a file name, which may contain any byte, for logs, terminals and the database."""
    clean = label.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in clean)[:200]
