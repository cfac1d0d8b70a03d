"""Writes imported agents into a project, so that a second import changes nothing.

Only files that an import has written and that have not been edited since are changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from agents_app.errors import Refused
from agents_app.formats.agent_files import SKILL, agent_files, file_problem
from agents_app.formats.herdctl import find_config
from agents_app.formats.imported import ImportedAgent
from agents_app.formats.manifest import (
    FILE,
    ManifestEntry,
    hash_of,
    read_manifest,
    replace_file,
)
from agents_app.formats.report import ReportLine
from agents_app.names import MAX_NAME_LENGTH

AGENTS = "agents"
FileState = Literal["created", "updated", "unchanged", "edited", "deleted"]
AgentState = FileState | Literal["refused"]
_BY_IMPORTANCE: tuple[FileState, ...] = ("deleted", "edited", "created", "updated", "unchanged")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    path: str
    state: FileState


@dataclass(frozen=True, slots=True)
class WrittenAgent:
    """An imported agent under its name in the project, and what happened to its files."""

    agent: ImportedAgent
    name: str
    enabled: bool
    files: tuple[WrittenFile, ...] = ()

    @property
    def state(self) -> AgentState:
        """The most important state of its files."""
        states = {file.state for file in self.files}
        return next((state for state in _BY_IMPORTANCE if state in states), "refused")


@dataclass(slots=True)
class _Plan:
    """What to write: decided first, so that a dry run decides the same."""

    texts: dict[Path, str] = field(default_factory=dict)
    written: list[WrittenAgent] = field(default_factory=list)
    report: list[ReportLine] = field(default_factory=list)
    errors: list[ReportLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WriteResult:
    written: tuple[WrittenAgent, ...]
    report: tuple[ReportLine, ...]
    errors: tuple[ReportLine, ...]


class AgentWriter:
    """Writes the agents of one source into one project."""

    def __init__(self, project: Path, source_id: str, source_title: str, *, enable: bool) -> None:
        self._project = project
        self._agents = project / AGENTS
        self._source, self._title, self._enable = source_id, source_title, enable
        _refuse_link(self._agents)
        _refuse_herdctl(project)
        self._manifest = read_manifest(self._agents)
        self._known = self._manifest.of(source_id)
        self._plan = _Plan()
        # By wanted name: thousands of lines may start the same program.
        self._numbers: dict[str, int] = {}

    def write(self, agents: Iterable[ImportedAgent], *, dry_run: bool) -> WriteResult:
        """Decide about each agent, and write unless it is a dry run."""
        before = self._manifest.as_text()
        taken = self._manifest.names_of_others(self._source)
        taken |= {entry.name for entry in self._known.values()}
        found = list(agents)
        for agent in found:
            self._decide(agent, taken)
        self._report_gone({agent.key for agent in found})
        if not dry_run:
            self._carry_out(before)
        plan = self._plan
        return WriteResult(tuple(plan.written), tuple(plan.report), tuple(plan.errors))

    def _carry_out(self, before: str) -> None:
        # SKILL.md last: without it a directory is no agent, and with it the agent must be disabled.
        for path, text in sorted(self._plan.texts.items(), key=lambda one: one[0].name == SKILL):
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        if self._manifest.as_text() != before:
            self._agents.mkdir(parents=True, exist_ok=True)
            replace_file(self._agents / FILE, self._manifest.as_text())

    # --- one agent --------------------------------------------------------------------------

    def _decide(self, agent: ImportedAgent, taken: set[str]) -> None:
        entry = self._known.get(agent.key)
        enabled = agent.can_be_enabled and (self._enable or (entry is not None and entry.enabled))
        files = agent_files(agent, self._title, enabled=enabled)
        if problem := file_problem(agent, files):
            self._refuse(agent, entry, problem)
            return
        if agent.is_existing and not self._existing(agent.name):
            advice = f"create agents/{agent.name}/{SKILL}, and import again"
            why = f"there is no agent {agent.name!r} in the project"
            self._refuse(agent, entry, ReportLine(agent.file, agent.line, "agent", why, advice))
            return
        if entry is None:
            name = agent.name if agent.is_existing else self._free_name(agent.name, files, taken)
            entry = ManifestEntry(name, enabled)
        directory = self._existing(entry.name) if agent.is_existing else None
        directory = directory or self._agents / entry.name
        written = tuple(
            self._file(agent, entry, directory / file, text) for file, text in files.items()
        )
        if written[-1].state in ("edited", "deleted"):
            enabled = entry.enabled  # its config.toml was not written
        if entry.files:
            self._known[agent.key] = replace(entry, enabled=enabled)
            taken.add(entry.name)
        self._plan.written.append(WrittenAgent(agent, entry.name, enabled, written))

    def _refuse(
        self, agent: ImportedAgent, entry: ManifestEntry | None, problem: ReportLine
    ) -> None:
        self._plan.errors.append(problem)
        name = entry.name if entry else agent.name
        self._plan.written.append(WrittenAgent(agent, name, entry.enabled if entry else False))

    def _file(
        self, agent: ImportedAgent, entry: ManifestEntry, path: Path, text: str
    ) -> WrittenFile:
        """Decide about one file, and note its hash in the entry if the import owns it."""
        shown = path.relative_to(self._project).as_posix()
        before, now, wanted = entry.files.get(path.name), _hash_on_disk(path), hash_of(text)
        if now == wanted:
            entry.files[path.name] = wanted
            return WrittenFile(shown, "unchanged")
        if before is None and now is None:
            self._plan.texts[path] = text
            entry.files[path.name] = wanted
            return WrittenFile(shown, "created")
        if now == before:
            self._plan.texts[path] = text
            entry.files[path.name] = wanted
            return WrittenFile(shown, "updated")
        if wanted != before:
            self._report_left(agent, shown, exists=now is not None, is_ours=before is not None)
        return WrittenFile(shown, "edited" if now else "deleted")

    def _report_left(
        self, agent: ImportedAgent, shown: str, *, exists: bool, is_ours: bool
    ) -> None:
        if exists and is_ours:
            why = "was edited since the last import; the source has changed, too"
            advice = "apply the change by hand, or delete the file and its entry in " + FILE
        elif exists:
            names = ", ".join(schedule.name for schedule in agent.schedules)
            why = "exists and was not written by an import"
            advice = f"add the schedules by hand ({names}), or move its content to {SKILL}"
        else:
            why = "was deleted since the last import; it is not written again"
            advice = f"to import it again, delete its entry in {AGENTS}/{FILE}"
        self._plan.report.append(ReportLine(shown, 0, "file", why, advice))

    # --- names ------------------------------------------------------------------------------

    def _free_name(self, wanted: str, files: dict[str, str], taken: set[str]) -> str:
        """The first of `backup`, `backup-2`, ... whose directory does not exist.

        A directory with nothing but the same files is taken over: an earlier import was killed
        before it wrote the manifest."""
        while True:
            self._numbers[wanted] = number = self._numbers.get(wanted, 0) + 1
            name = _numbered(wanted, number)
            directory = self._agents / name
            if name in taken or (self._project / name / SKILL).exists():
                continue
            if not _exists(directory) or _has_only(directory, files):
                return name

    def _existing(self, name: str) -> Path | None:
        """The directory of an agent of the project."""
        for directory in (self._agents / name, self._project / name):
            if (directory / SKILL).is_file():
                return directory
        return None

    def _report_gone(self, keys: set[str]) -> None:
        for key, entry in self._known.items():
            if key not in keys and _exists(self._agents / entry.name):
                why = f"is no longer in {self._title}; the agent is left as it is"
                advice = "delete its directory if it is not wanted any more"
                shown = f"{AGENTS}/{entry.name}"
                self._plan.report.append(ReportLine(shown, 0, "agent", why, advice))


def _numbered(wanted: str, number: int) -> str:
    suffix = "" if number == 1 else f"-{number}"
    return wanted[: MAX_NAME_LENGTH - len(suffix)].rstrip("-") + suffix


def _has_only(directory: Path, files: dict[str, str]) -> bool:
    if directory.is_symlink() or not directory.is_dir():
        return False
    found = {path.name: _hash_on_disk(path) for path in directory.iterdir()}
    return all(name in files and digest == hash_of(files[name]) for name, digest in found.items())


def _hash_on_disk(path: Path) -> str | None:
    """The hash of a file; None if it does not exist. A link or a directory has another hash."""
    try:
        if path.is_symlink() or not path.is_file():
            return "not a file" if _exists(path) else None
        return hash_of(path.read_bytes())
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _refuse_link(agents: Path) -> None:
    if agents.is_symlink():
        raise Refused(f"{agents} is a symlink; name the directory that it points to with --into")


def _refuse_herdctl(project: Path) -> None:
    """Drover does not read SKILL.md files of a directory with a herdctl.yaml."""
    if config := find_config(project):
        raise Refused(f"{config} says which agents the project has; name another one with --into")
