"""SKILL.md and config.toml to specs: text in, spec out; no disk, no tables, no clock."""

from dataclasses import replace
from typing import Any

from agents_app.names import agent_name_problem, canonical, mistyped, unknown_field
from agents_app.skills.document import Document, SourceText, check_text
from agents_app.skills.errors import Problems, SkillError, SourcePlace
from agents_app.skills.frontmatter import read_frontmatter, unclosed
from agents_app.skills.notify import read_targets
from agents_app.skills.program import with_program
from agents_app.skills.schedules import read_schedules
from agents_app.skills.specs import AgentSpec, ProjectSpec
from agents_app.skills.tables import Layer, build, file_fields, fold, fold_nested, merge
from agents_app.skills.toml_reader import read_toml
from agents_app.skills.webhooks import check_filters, read_sources, read_webhooks

# `name` is the directory's; a `name:` in the file is a title. The others are not for files.
_NOT_IN_FILES = {"name", "title", "instructions", "source_path"}
_AGENT_FIELDS = {
    **{name: f for name, f in file_fields(AgentSpec).items() if name not in _NOT_IN_FILES},
    "name": "title",
    "schedule": "schedule",
}
_RUNTIME_FIELDS = _AGENT_FIELDS.keys() - {"name", "license", "compatibility", "allowed_tools"}


def parse_skill(
    skill: SourceText,
    *,
    name: str,
    project: ProjectSpec | None = None,
    config: SourceText | None = None,
) -> AgentSpec:
    """The agent of a SKILL.md and its config.toml; a SkillError has everything that is wrong."""
    problems = Problems(name)
    if reason := agent_name_problem(name):
        problems.add(SourcePlace(skill.name), reason)
    front, body = _front(skill, problems)
    fields = merge(front, _config(config, problems)) if config else front
    spec = _agent(name, body, skill, fields, project or ProjectSpec(), problems)
    problems.raise_any()
    assert spec is not None
    return spec


def parse_project(source: SourceText) -> ProjectSpec:
    problems = Problems()
    layer = Layer(read_toml(source), problems)
    table = fold(layer.document.data, file_fields(ProjectSpec), layer)
    table["webhooks"] = read_sources(table.get("webhooks", {}), layer)
    table["notify"] = read_targets(table.get("notify", []), layer)
    spec = build(ProjectSpec, fold_nested(table, ProjectSpec, layer), layer)
    problems.raise_any()
    assert spec is not None
    return spec


def _front(skill: SourceText, problems: Problems) -> tuple[Document, str]:
    try:
        check_text(skill)
        if error := unclosed(skill):
            raise error
        document, body = read_frontmatter(skill)
    except SkillError as error:
        problems.take(error)
        return Document(skill.name), ""
    return _fields(document, problems), body


def _config(config: SourceText, problems: Problems) -> Document:
    try:
        return _fields(read_toml(config), problems)
    except SkillError as error:
        problems.take(error)
        return Document(config.name)


def _fields(document: Document, problems: Problems) -> Document:
    """One file's fields in the spec's spelling, those under `metadata` among them."""
    layer = Layer(_lift_metadata(document, problems), problems)
    table = fold(layer.document.data, _AGENT_FIELDS, layer)
    data = fold_nested(table, AgentSpec, layer)
    return Document(document.source, data, layer.document.places)


def _lift_metadata(document: Document, problems: Problems) -> Document:
    """Runtime fields move up from `metadata`; whatever else people keep there stays."""
    metadata = document.data.get("metadata")
    if not isinstance(metadata, dict):
        return document
    layer = Layer(document, problems)
    top = {canonical(key) for key in document.data}
    lifted, kept = {}, {}
    for key, value in metadata.items():
        if canonical(key) in _RUNTIME_FIELDS - {"metadata"}:
            if canonical(key) in top:
                layer.complain(("metadata", key), "is also given outside metadata; keep one")
            lifted[key] = value
        elif mistyped(key, _RUNTIME_FIELDS):
            layer.complain(("metadata", key), unknown_field(key, _RUNTIME_FIELDS))
        else:
            kept[key] = value
    places = {at[1:]: place for at, place in document.places.items() if at[0] == "metadata"}
    data = {**lifted, **document.data, "metadata": kept}
    return Document(document.source, data, {**places, **document.places})


def _agent(
    name: str,
    body: str,
    skill: SourceText,
    fields: Document,
    project: ProjectSpec,
    problems: Problems,
) -> AgentSpec | None:
    layer = Layer(fields, problems)
    table = _with_defaults(fields.data, project)
    schedule, schedules = table.pop("schedule", None), table.pop("schedules", {})
    table["webhooks"] = read_webhooks(table.get("webhooks", []))
    own = {"name": name, "instructions": body, "source_path": skill.path}
    spec = build(AgentSpec, {**table, **own}, layer)
    timezone = spec.timezone if spec else None
    read = read_schedules(schedule, schedules, timezone, layer)
    check_filters(spec.webhooks if spec else (), project.webhooks, layer)
    return replace(with_program(spec, project, layer), schedules=read) if spec else None


def _with_defaults(table: dict[str, Any], project: ProjectSpec) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "timeout_seconds": project.local.timeout_seconds,
        "work_queue_size": project.work_queue_size,
        "max_reruns": project.max_reruns,
        "max_call_depth": project.max_call_depth,
        "timezone": project.timezone,
    }
    runtime = table.get("runtime", {})
    if isinstance(runtime, dict):
        runtime = {"image": project.image, **runtime}
    return {**defaults, **table, "runtime": runtime}
