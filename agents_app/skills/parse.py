"""Parses SKILL.md and config.toml to specs; reads no files, database rows or clocks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents_app.harness import HARNESSES
from agents_app.names import agent_name_problem, canonical, mistyped, unknown_field
from agents_app.skills.dialect import Dialect
from agents_app.skills.document import Document, SourceText, check_text
from agents_app.skills.errors import Problems, SkillError, SourcePlace
from agents_app.skills.fields import as_list
from agents_app.skills.frontmatter import read_frontmatter, unclosed_frontmatter
from agents_app.skills.hooks import check_hooks, normalize_hooks
from agents_app.skills.schedules import read_schedules
from agents_app.skills.specs import AgentSpec, NotifySpec, ProjectSpec, SandboxSpec
from agents_app.skills.tables import (
    Layer,
    build_spec,
    excerpt,
    file_fields,
    merge,
    normalize_nested,
    normalize_table,
)
from agents_app.skills.toml_reader import read_toml
from agents_app.skills.webhooks import check_filters, read_sources, read_webhooks
from agents_app.skills.work_sources import read_work_source

# The name of the agent is that of its directory; `name:` in the file is the title.
_NOT_IN_FILES = {"name", "title", "instructions", "source_path"}
_AGENT_FIELDS = {
    **{name: f for name, f in file_fields(AgentSpec).items() if name not in _NOT_IN_FILES},
    "name": "title",
    "schedule": "schedule",
    # Short for `runtime.image`.
    "image": "image",
}
_RUNTIME_FIELDS = _AGENT_FIELDS.keys() - {"name", "license", "compatibility", "allowed_tools"}


def parse_skill(
    skill: SourceText,
    *,
    name: str,
    project: ProjectSpec | None = None,
    config: SourceText | None = None,
    dialect: Dialect | None = None,
) -> AgentSpec:
    """The agent of a SKILL.md and its config.toml; raises a SkillError with all errors."""
    problems = Problems(name)
    if reason := agent_name_problem(name):
        problems.add(SourcePlace(skill.name), reason)
    front, body = _frontmatter_fields(skill, problems, dialect)
    fields = merge(front, _config_fields(config, problems, dialect)) if config else front
    if dialect:
        fields = dialect.merged_agent(Layer(fields, problems))
    spec = _build_agent(name, body, skill.path, fields, project or ProjectSpec(), problems)
    problems.raise_any()
    assert spec is not None
    return spec


def build_agent(
    name: str, instructions: str, path: Path, fields: Document, project: ProjectSpec
) -> AgentSpec:
    """The agent of another format, whose fields have the names of AgentSpec; raises a SkillError.

    `path` is the agent's file, in whose directory the agent is.
    """
    problems = Problems(name)
    spec = _build_agent(name, instructions, path, fields, project, problems)
    problems.raise_any()
    assert spec is not None
    return spec


def parse_agent_table(
    name: str, table: dict[str, Any], instructions: str, path: Path, *, label: str
) -> AgentSpec:
    """The agent of a table with the fields of a SKILL.md; raises a SkillError with all errors.

    `label` names the table in errors; the agent is in the directory of `path`.
    """
    problems = Problems(name)
    if reason := agent_name_problem(name):
        problems.add(SourcePlace(label), reason)
    fields = _fields(Document(label, table), problems, None)
    spec = _build_agent(name, instructions, path, fields, ProjectSpec(), problems)
    problems.raise_any()
    assert spec is not None
    return spec


def parse_project(source: SourceText, dialect: Dialect | None = None) -> ProjectSpec:
    problems = Problems()
    layer = Layer(read_toml(source), problems)
    if dialect:
        layer = Layer(dialect.project(layer), problems)
    table = _with_sandbox_table(
        normalize_table(layer.document.data, file_fields(ProjectSpec), layer)
    )
    table["webhooks"] = read_sources(table.get("webhooks", {}), layer)
    table["notify"] = _read_notify(table.get("notify", []), layer)
    spec = build_spec(ProjectSpec, normalize_nested(table, ProjectSpec, layer), layer)
    problems.raise_any()
    assert spec is not None
    return spec


def _frontmatter_fields(
    skill: SourceText, problems: Problems, dialect: Dialect | None
) -> tuple[Document, str]:
    try:
        check_text(skill)
        if (error := unclosed_frontmatter(skill)) is not None:
            raise error
        document, body = read_frontmatter(skill)
    except SkillError as error:
        problems.add_error(error)
        return Document(skill.name), ""
    return _fields(document, problems, dialect), body


def _config_fields(config: SourceText, problems: Problems, dialect: Dialect | None) -> Document:
    try:
        return _fields(read_toml(config), problems, dialect)
    except SkillError as error:
        problems.add_error(error)
        return Document(config.name)


def _fields(document: Document, problems: Problems, dialect: Dialect | None) -> Document:
    """The fields of one file with the names of the spec, including those under `metadata`."""
    more = dialect.agent_fields if dialect else frozenset[str]()
    layer = Layer(_lift_metadata(document, problems, more), problems)
    if dialect:
        layer = Layer(dialect.agent(layer), problems)
    known = {**_AGENT_FIELDS, **{name: name for name in more - _AGENT_FIELDS.keys()}}
    table = _with_sandbox_table(normalize_table(layer.document.data, known, layer))
    data = normalize_hooks(normalize_nested(table, AgentSpec, layer), layer)
    return _move_image(Document(document.source, data, layer.document.places), layer)


def _move_image(document: Document, layer: Layer) -> Document:
    """Move `image` into `runtime`, where it belongs."""
    data = dict(document.data)
    image, runtime = data.pop("image", None), data.get("runtime", {})
    if image is None or not isinstance(runtime, dict):
        return Document(document.source, data, document.places)
    if "image" in runtime:
        layer.report(("image",), "is also given in runtime; keep one")
    places = {("runtime", "image"): document.place(("image",)), **document.places}
    return Document(document.source, {**data, "runtime": {"image": image, **runtime}}, places)


def _lift_metadata(document: Document, problems: Problems, more: frozenset[str]) -> Document:
    """Move runtime fields out of `metadata`; other keys stay there."""
    metadata = document.data.get("metadata")
    if not isinstance(metadata, dict):
        return document
    layer = Layer(document, problems)
    top = {canonical(key) for key in document.data}
    lifted, kept = {}, {}
    for key, value in metadata.items():
        if canonical(key) in (_RUNTIME_FIELDS | more) - {"metadata"}:
            if canonical(key) in top:
                layer.report(("metadata", key), "is also given outside metadata; keep one")
            lifted[key] = value
        elif mistyped(key, _RUNTIME_FIELDS):
            layer.report(("metadata", key), unknown_field(key, _RUNTIME_FIELDS))
        else:
            kept[key] = value
    places = {at[1:]: place for at, place in document.places.items() if at[0] == "metadata"}
    data = {**lifted, **document.data, "metadata": kept}
    return Document(document.source, data, {**places, **document.places})


def _build_agent(
    name: str,
    body: str,
    path: Path,
    fields: Document,
    project: ProjectSpec,
    problems: Problems,
) -> AgentSpec | None:
    layer = Layer(fields, problems)
    table = _with_defaults(fields.data, project)
    schedule, schedules = table.pop("schedule", None), table.pop("schedules", {})
    table["webhooks"] = read_webhooks(table.get("webhooks", []))
    source = read_work_source(table.get("work_source"), layer, ("work_source",))
    table["work_source"] = source
    own = {"name": name, "instructions": body, "source_path": path}
    spec = build_spec(AgentSpec, {**table, **own}, layer)
    timezone = spec.timezone if spec else None
    read = read_schedules(schedule, schedules, timezone, layer)
    check_filters(spec.webhooks if spec else (), project.webhooks, layer)
    if spec:
        check_hooks(spec, layer)
    return replace(_with_command(spec, project, layer), schedules=read) if spec else None


def _with_defaults(table: dict[str, Any], project: ProjectSpec) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "timeout_seconds": project.local.timeout_seconds,
        "work_queue_size": project.work_queue_size,
        "max_reruns": project.max_reruns,
        "max_call_depth": project.max_call_depth,
        "timezone": project.timezone,
        "scale": project.default_agent_scale,
    }
    runtime = table.get("runtime", {})
    if isinstance(runtime, dict):
        # An image of the agent itself is of no use but in a container.
        chosen = {"type": "container"} if runtime.get("image") else {}
        runtime = {**_runtime_defaults(project), **chosen, **runtime}
    sandbox = table.get("sandbox", {})
    if isinstance(sandbox, dict):
        sandbox = _with_project_sandbox(sandbox, project.sandbox)
    return {**defaults, **table, "runtime": runtime, "sandbox": sandbox}


def _with_sandbox_table(table: dict[str, Any]) -> dict[str, Any]:
    """`sandbox: off` is short for `sandbox: {mode: off}`."""
    short = table.get("sandbox", {})
    if isinstance(short, bool):
        short = "auto" if short else "off"
    return {**table, "sandbox": {"mode": short}} if isinstance(short, str) else table


def _with_project_sandbox(own: dict[str, Any], project: SandboxSpec) -> dict[str, Any]:
    """The paths of the project are added to those of the agent."""
    paths: dict[str, Any] = {}
    for name, below in (("read", project.read), ("write", project.write)):
        above = as_list(own.get(name, []))
        paths[name] = [*below, *above] if isinstance(above, list) else above
    return {"mode": project.mode, **own, **paths}


def _runtime_defaults(project: ProjectSpec) -> dict[str, Any]:
    """`image` of the project, or the fields of its table `local`."""
    local = project.local
    given = {"image": project.image or local.image, "memory": local.memory, "cpus": local.cpus}
    return {name: value for name, value in given.items() if value}


def _read_notify(tables: Any, layer: Layer) -> tuple[NotifySpec, ...]:
    if not isinstance(tables, list):
        layer.report(("notify",), f"must be a list of tables ([[notify]]), not {excerpt(tables)}")
        return ()
    found: dict[str, NotifySpec] = {}
    for number, table in enumerate(tables):
        at = ("notify", number)
        values = normalize_table(table, file_fields(NotifySpec), layer, at)
        spec = build_spec(NotifySpec, values, layer, at)
        if spec and spec.url in found:
            problem = "another [[notify]] table has this URL; list all events in one table"
            layer.report((*at, "url"), problem)
        elif spec:
            found[spec.url] = spec
    return tuple(found.values())


# --- command and harness --------------------------------------------------------------------


def _with_command(spec: AgentSpec, project: ProjectSpec, layer: Layer) -> AgentSpec:
    """Fields of the agent win over those of the project, and a command over a harness."""
    harness = spec.harness or project.harness
    command = spec.command
    if not command and not spec.harness:
        command = project.command
    if not command and harness:
        command = HARNESSES[harness].argv(spec.model, spec.harness_args)
        _check_harness_fields(spec, harness, layer)
    else:
        _refuse_harness_fields(spec, layer)
    return replace(spec, harness=harness, command=command)


def _check_harness_fields(spec: AgentSpec, harness: str, layer: Layer) -> None:
    if spec.model and not HARNESSES[harness].takes_model:
        layer.report(("model",), f"the harness {harness!r} has no model; leave it out")
    if spec.messages == "stdin" and not HARNESSES[harness].body_is_script:
        problem = f"the harness {harness!r} reads its prompt from standard input; use 'inbox'"
        layer.report(("messages",), problem)


def _refuse_harness_fields(spec: AgentSpec, layer: Layer) -> None:
    """These fields are arguments of a harness's command, and no harness is used."""
    for name, given in (("model", spec.model), ("harness_args", spec.harness_args)):
        if given:
            advice = "put it into `command`" if spec.command else "set `harness`"
            layer.report((name,), f"is only used with a harness; {advice}")
