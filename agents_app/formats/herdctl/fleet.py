"""Reads herdctl.yaml with its sub-fleets and agents, as the specs that SKILL.md files give."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agents_app.formats.herdctl.agent import AgentTranslation, agent_name
from agents_app.formats.herdctl.documents import AGENT, FLEET, MERGED_AGENT
from agents_app.formats.herdctl.interpolate import interpolate, variables_in
from agents_app.formats.herdctl.merge import merge_documents, part_of, with_defaults
from agents_app.formats.herdctl.schema import NAME
from agents_app.formats.herdctl.validate import Findings, Issue, Kind, checked
from agents_app.formats.herdctl.variables import (
    ENV_FILE,
    is_reserved,
    project_variables,
    undefined_reason,
)
from agents_app.formats.report import ReportLine
from agents_app.names import agent_name_problem
from agents_app.skills import (
    AgentSpec,
    Document,
    KeyPath,
    Problems,
    ProjectSpec,
    SkillError,
    SourcePlace,
    check_text,
    dotted,
    excerpt,
    read_source,
    read_yaml,
)

CONFIG_NAMES = ("herdctl.yaml", "herdctl.yml")
MAX_DEPTH = 20
MAX_FILES = 1000
_EMPTY = Document("")
_OWN = "has no counterpart: Drover has its own"
# Fields of herdctl.yaml that Drover does not honour: why, and what to do.
_FLEET_FIELDS = {
    "working_directory": ("herdctl itself does not use it here", "set it under `defaults`"),
    "docker": ("herdctl itself does not use it here", "set it under `defaults`"),
    "web": (f"{_OWN} dashboard", "set DROVER_PORT and DROVER_HOST"),
    "webhooks": (f"{_OWN} webhook sources", "add [webhooks.NAME] to config.toml"),
    "chat": ("Drover has no chat connections", "start agents with a webhook source"),
}


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A herdctl.yaml, the names of the fleets above it, and the defaults of its agents."""

    document: Document
    path: Path
    names: tuple[str, ...] = ()
    defaults: Document = _EMPTY
    chain: tuple[Path, ...] = ()


@dataclass(slots=True)
class FleetReader:
    """Collects the agents, errors and report lines of a project."""

    root: Path
    project: ProjectSpec
    env: Mapping[str, str]
    agents: dict[str, AgentSpec] = field(default_factory=dict)
    errors: list[SkillError] = field(default_factory=list)
    report: list[ReportLine] = field(default_factory=list)
    # Also files that do not exist: they may be created.
    files: list[Path] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    # False if a file could not be read, whose agents may still exist.
    complete: bool = True
    is_too_large: bool = False

    # --- fleets ---------------------------------------------------------------------------------

    def read_root(self, path: Path) -> None:
        document = self._load(path, FLEET, SourcePlace(self._label(path)))
        if document:
            self._read_fleet(
                FleetFile(document, path, defaults=part_of(document, ("defaults",)), chain=(path,))
            )

    def _read_fleet(self, fleet: FleetFile) -> None:
        for name, (why, advice) in _FLEET_FIELDS.items():
            if fleet.document.data.get(name):
                self._say(fleet.document, (name,), why, advice)
        for number in range(len(fleet.document.data.get("agents") or ())):
            self._read_reference(fleet, ("agents", number))
        taken: dict[str, KeyPath] = {}
        for number in range(len(fleet.document.data.get("fleets") or ())):
            self._read_sub_fleet(fleet, ("fleets", number), taken)

    def _read_sub_fleet(self, fleet: FleetFile, at: KeyPath, taken: dict[str, KeyPath]) -> None:
        reference = part_of(fleet.document, at)
        place = _place(fleet.document, (*at, "path"))
        try:
            path = self._referred(fleet, at)
            _refuse_cycle((*fleet.chain, path), place, self.root)
            document = self._load(path, FLEET, place)
            if document is None:
                return
            name = self._fleet_name(reference, document, path, place)
            if name in taken:
                raise SkillError(f"another sub-fleet here is called {name!r}; set `name`", place)
            document = merge_documents(document, part_of(fleet.document, (*at, "overrides")))
            _refuse_issues(document, FLEET)
            taken[name] = at
        except SkillError as error:
            self._fail(error)
            return
        defaults = merge_documents(fleet.defaults, part_of(document, ("defaults",)))
        names, chain = (*fleet.names, name), (*fleet.chain, path)
        self._read_fleet(FleetFile(document, path, names, defaults, chain))

    def _fleet_name(
        self, reference: Document, document: Document, path: Path, place: SourcePlace
    ) -> str:
        own = part_of(document, ("fleet",)).data.get("name")
        name = self._text(reference.data.get("name") or own or path.parent.name, place)
        if not NAME.fullmatch(name):
            reason = f"{name!r} is not a valid fleet name; set `name` to letters, digits, '_', '-'"
            raise SkillError(reason, place)
        return name

    # --- agents ---------------------------------------------------------------------------------

    def _read_reference(self, fleet: FleetFile, at: KeyPath) -> None:
        place = _place(fleet.document, (*at, "path"))
        try:
            path = self._referred(fleet, at)
        except SkillError as error:
            self._fail(error)
            return
        own = self._load(path, AGENT, place, fleet.names)
        if own is None:
            return
        merged = with_defaults(fleet.defaults, own)
        merged = merge_documents(merged, part_of(fleet.document, (*at, "overrides")))
        self._add_agent(merged, path, fleet.names)

    def _add_agent(self, merged: Document, path: Path, fleets: tuple[str, ...]) -> None:
        own = merged.data["name"]
        if not isinstance(own, str) or not NAME.fullmatch(own):
            # Of an override: it is unknown which agent is meant.
            self._fail(SkillError(f"name: {excerpt(own)} is not a name", _place(merged, ("name",))))
            return
        qualified = ".".join((*fleets, own))
        name = agent_name(qualified)
        if reason := self._name_problem(name, qualified):
            # Not an error of the agent that has this name already.
            self.errors.append(SkillError(f"name: {reason}", _place(merged, ("name",))))
            return
        try:
            _refuse_issues(merged, MERGED_AGENT)
            translation = AgentTranslation(merged, self.env)
            if name != qualified:
                why = "agents of Drover have lower-case letters, digits and single hyphens"
                translation.say(("name",), why, f"{qualified} is called {name} in Drover")
            self.agents[name] = translation.spec(name, path, self.project)
            self.report += translation.report
        except SkillError as error:
            self._fail(error, name)

    def _name_problem(self, name: str, qualified: str) -> str | None:
        if reason := agent_name_problem(name):
            return f"{reason} (from {qualified!r})"
        if name in self.agents:
            other = self._label(self.agents[name].source_path)
            return f"agent {name!r} is also defined in {other}; rename one"
        return None

    # --- files ----------------------------------------------------------------------------------

    def _load(
        self, path: Path, kind: Kind, place: SourcePlace, fleets: tuple[str, ...] | None = None
    ) -> Document | None:
        """A valid document; None after its errors were collected. `fleets` is for an agent."""
        if len(self.files) > MAX_FILES:
            if not self.is_too_large:
                self._fail(SkillError(f"a fleet has at most {MAX_FILES} files", place))
            self.is_too_large = True
            return None
        self.files.append(path)
        name: str | None = None
        try:
            document = self._read(path, place)
            given = document.data.get("name")
            if fleets is not None and isinstance(given, str) and NAME.fullmatch(given):
                name = agent_name(".".join((*fleets, given)))
                name = None if agent_name_problem(name) else name
            self.variables |= variables_in(document.data)
            for at in _refuse_issues(document, kind).dropped:
                why, advice = "is unknown; herdctl drops it", "correct the name or remove it"
                self._say(document, at, why, advice)
        except SkillError as error:
            self._fail(error, name)
            return None
        return document

    def _read(self, path: Path, place: SourcePlace) -> Document:
        source = read_source(self.root, path)
        if source is None:
            reason = f"there is no file {self._label(path)}; create it, or remove the reference"
            raise SkillError(reason, place)
        check_text(source)
        root, document = read_yaml(source.text, source.name, aliases=True)
        if root is not None and not isinstance(root, dict):
            reason = "must be a table of fields (name: value)"
            raise SkillError(reason, SourcePlace(source.name, 1))
        return _with_new_names(document)

    def _referred(self, fleet: FleetFile, at: KeyPath) -> Path:
        """The path of a reference, which must be inside the project."""
        where = (*at, "path")
        place = _place(fleet.document, where)
        text = self._text(part_of(fleet.document, at).data.get("path", ""), place)
        path = Path(_normalized(fleet.path.parent, text))
        if not path.is_relative_to(self.root) or path == self.root or "\0" in text:
            reason = f"{text!r} is outside of the project directory; move the file into it"
            raise SkillError(f"{dotted(where)}: {reason}", place)
        return path

    def _text(self, value: object, place: SourcePlace) -> str:
        def undefined(name: str, _at: KeyPath) -> None:
            raise SkillError(undefined_reason(name), place)

        if not isinstance(value, str):
            raise SkillError("must be text", place)
        return str(interpolate(value, self.env, undefined=undefined))

    def _label(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _say(self, document: Document, at: KeyPath, why: str, advice: str) -> None:
        place = document.place(at)
        self.report.append(ReportLine(place.path, place.line or 0, dotted(at), why, advice))

    def _fail(self, error: SkillError, agent: str | None = None) -> None:
        self.errors += [SkillError(one.reason, one.place, agent=agent) for one in error.each]
        # Without a name it is unknown which agents are meant: none is removed.
        self.complete = self.complete and agent is not None


def find_config(root: Path) -> Path | None:
    """The herdctl.yaml of a project; also one that cannot be read."""
    for name in CONFIG_NAMES:
        path = root / name
        if path.is_symlink() or path.exists():
            return path
    return None


def read_fleet(
    root: Path, config: Path, project: ProjectSpec, server: Mapping[str, str]
) -> FleetReader:
    """Read all agents of a herdctl project and collect all errors; never raises."""
    reader = FleetReader(root, project, {})
    reader.files.append(root / ENV_FILE)
    try:
        reader.env = project_variables(root, server)
    except SkillError as error:
        reader.errors += error.each
        reader.env = {name: value for name, value in server.items() if not is_reserved(name)}
    reader.read_root(config)
    # What the defaults of a fleet say is found once for each agent.
    reader.report = list(dict.fromkeys(reader.report))
    reader.variables = {name for name in reader.variables if not is_reserved(name)}
    return reader


def _refuse_cycle(chain: tuple[Path, ...], place: SourcePlace, root: Path) -> None:
    shown = " -> ".join(path.relative_to(root).as_posix() for path in chain)
    # By their files: a symlink to a directory above has another path each time.
    files = [os.path.realpath(path) for path in chain]
    if files[-1] in files[:-1]:
        raise SkillError(f"the fleets refer to each other: {shown}; remove one reference", place)
    if len(chain) > MAX_DEPTH:
        raise SkillError(f"fleets are nested deeper than {MAX_DEPTH} levels: {shown[:200]}", place)


def _with_new_names(document: Document) -> Document:
    """`workspace` is the old name of `working_directory`."""
    data = _renamed(document.data)
    if isinstance(defaults := data.get("defaults"), dict):
        data["defaults"] = _renamed(defaults)
    places = {
        tuple("working_directory" if part == "workspace" else part for part in at): place
        for at, place in document.places.items()
        if at[-1] == "workspace"
    }
    return Document(document.source, data, {**places, **document.places})


def _renamed(table: dict[str, object]) -> dict[str, object]:
    table = dict(table)
    old = table.pop("workspace", None)
    if old is not None:
        table.setdefault("working_directory", old)
    return table


def _normalized(directory: Path, text: str) -> str:
    """The path without `..`, as text: symlinks are followed and checked when the file is read."""
    parts: list[str] = []
    for part in (directory / text).parts[1:]:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/" + "/".join(parts)


def _place(document: Document, at: KeyPath) -> SourcePlace:
    """The line of a field; its column is obvious from the line."""
    return replace(document.place(at), column=None)


def _refuse_issues(document: Document, kind: Kind) -> Findings:
    """Raise a SkillError with all issues of a document."""
    _, found = checked(kind, document.data)
    problems = Problems()
    for issue in found.issues:
        problems.add(document.place(issue.position), _reason(issue))
    problems.raise_any()
    return found


def _reason(issue: Issue) -> str:
    return f"{dotted(issue.path)}: {issue.reason}" if issue.path else issue.reason
