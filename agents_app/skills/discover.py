"""Finds the agents of a project; the only place that reads a project's definitions from disk."""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from agents_app.names import agent_name_problem
from agents_app.skills.errors import SkillError, SourcePlace
from agents_app.skills.files import read_source
from agents_app.skills.parse import parse_project, parse_skill
from agents_app.skills.specs import AgentSpec, ProjectSpec

AGENTS = "agents"
SKILL = "SKILL.md"
CONFIG = "config.toml"


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a project says now; an agent that is neither here nor broken has been removed."""

    project: ProjectSpec
    agents: tuple[AgentSpec, ...]
    errors: tuple[SkillError, ...]
    # False when a directory could not be listed: then a missing agent proves nothing.
    complete: bool = True

    @property
    def broken(self) -> dict[str, str]:
        """Agents that are there and cannot be read, and why: their old definition goes on."""
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for error in self.errors:
            if error.agent:
                reasons[error.agent].append(str(error))
        return {agent: "\n".join(lines) for agent, lines in reasons.items()}


def discover_project(project: Path, last_good: ProjectSpec | None = None) -> Discovery:
    """Every agent that can be read and everything that is wrong; never an exception.

    A project file that does not parse leaves `last_good` in force, or the defaults.
    """
    root = project.resolve()
    errors: list[SkillError] = []
    spec = _read_project(root, last_good or ProjectSpec(), errors)
    directories = _candidates(root, errors)
    complete = not any(error.agent is None and error.path != CONFIG for error in errors)
    agents = [_read_agent(root, found, spec, errors) for found in directories.values()]
    return Discovery(spec, tuple(agent for agent in agents if agent), tuple(errors), complete)


def _read_project(root: Path, fallback: ProjectSpec, errors: list[SkillError]) -> ProjectSpec:
    try:
        source = read_source(root, root / CONFIG)
        return parse_project(source) if source else ProjectSpec()
    except SkillError as error:
        errors.extend(error.each)
        return fallback


def _candidates(root: Path, errors: list[SkillError]) -> dict[str, list[Path]]:
    """The directories of each name, in the order of names."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for parent in (root / AGENTS, root):
        for directory in _directories(root, parent, errors):
            if directory != root / AGENTS and _has_skill(directory):
                found[directory.name].append(directory)
    return dict(sorted(found.items()))


def _directories(root: Path, parent: Path, errors: list[SkillError]) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            return [Path(entry.path) for entry in entries if _may_hold_an_agent(entry)]
    except FileNotFoundError:
        if parent != root:
            return []  # a project without an agents directory
        reason = "there is no such project directory; set DROVER_PROJECT"
    except OSError as error:
        reason = f"cannot be listed: {error.strerror}"
    label = parent.relative_to(root).as_posix() if parent != root else str(root)
    errors.append(SkillError(reason, SourcePlace(label)))
    return []


def _may_hold_an_agent(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name == "node_modules":
        return False
    try:
        return entry.is_dir()
    except OSError:
        return False


def _has_skill(directory: Path) -> bool:
    """Whether this is meant as an agent; a directory that cannot be searched might be."""
    try:
        os.lstat(directory / SKILL)
    except PermissionError:
        return agent_name_problem(directory.name) is None
    except OSError:
        return False
    return True


def _read_agent(
    root: Path, found: list[Path], project: ProjectSpec, errors: list[SkillError]
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
        return _parse_agent(root, directory, project)
    except SkillError as error:
        known = None if agent_name_problem(name) else name
        errors.extend(SkillError(one.reason, one.place, agent=known) for one in error.each)
        return None


def _parse_agent(root: Path, directory: Path, project: ProjectSpec) -> AgentSpec | None:
    skill = read_source(root, directory / SKILL)
    if skill is None:
        return None  # removed since the listing
    config = read_source(root, directory / CONFIG)
    spec = parse_skill(skill, name=directory.name, project=project, config=config)
    if not spec.command:
        reason = "no command: name the program to run in `command`, or a `harness`, here or in the "
        reason += "project's file"
        raise SkillError(reason, SourcePlace(skill.name))
    return spec


def _printable(label: str) -> str:
    """A file name may hold any byte; a message goes to logs, a terminal and the database."""
    clean = label.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in clean)[:200]
