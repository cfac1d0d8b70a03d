"""reference/skill.md and the config.toml half of reference/configuration.md, from the specs."""

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import getclosurevars
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from agents_app.skills import specs
from tests.docs.generate.markdown import code, describe, page, table

# What a validator accepts, by the name of its function; any other keeps the base type.
_ACCEPTS = {
    "seconds": "duration: `15m`, `1.5h`, or a number of seconds",
    "argv": "command: a list, or a text that is split as a shell would",
    "several": "text or list of texts",
    "words": "text or list of texts",
    "one_line": "text, at most 1024 characters",
    "zone_name": "time zone: `Europe/Berlin`",
    "variable": "name of a variable",
    "variable_text": "text or number",
    "secret_ref": "`env:NAME` or `file:path`",
    "callback_url": "URL, `env:NAME` or `file:path`",
    "hook_url": "URL or `${NAME}`",
    "header_name": "name of a header",
    "relative_path": "relative path",
    "absolute_path": "absolute path, or one that begins with `~/`",
    "event_name": "event name",
    "filter_value": "text or list of texts",
    "repository": "`owner/name`",
    "short_key": "key: `ENG`",
    "label_list": "text or list of texts",
    "auth_reference": "`type`, `type:instance`, `env:NAME` or `file:path`",
    "server_url": "URL",
}
_PLAIN: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
}
_SKILL = """
An agent is a directory `agents/NAME/` of the project with a file `SKILL.md`: YAML front matter
between two lines `---`, then the instructions. The name of the directory is the name of the agent.
A `config.toml` in the same directory may set the same fields; it takes precedence over the front
matter, table by table. Fields may also stand under `metadata:`. Field names may be written in
`snake_case` or `camelCase`. A field that is not listed here is an error with the file and the line.
"""


def kind(annotation: Any) -> str:
    """What a file may write for a field of this type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin is Literal:
        return ", ".join(code(value) for value in arguments if value != "")
    if origin is UnionType or str(origin) == "typing.Union":
        return _either(arguments)
    if origin is tuple:
        if is_dataclass(arguments[0]):
            return "list of tables"
        return f"list: {kind(arguments[0])}"
    if is_dataclass(annotation) or origin is not None:
        return "table"
    return _PLAIN.get(annotation, "table")


def _either(arguments: Iterable[Any]) -> str:
    kinds = [kind(each) for each in arguments if each is not type(None)]
    return ", ".join(dict.fromkeys(each for each in kinds if each))


def _annotated(base: Any, metadata: tuple[Any, ...]) -> str:
    low = next((each.ge for each in metadata if hasattr(each, "ge")), None)
    high = next((each.le for each in metadata if hasattr(each, "le")), None)
    if low is not None and high is not None:
        return f"{_PLAIN[base]} from {low} to {high}"
    for each in metadata:
        function = getattr(each, "func", None)
        name = getattr(function, "__name__", "")
        if name in _ACCEPTS:
            return _ACCEPTS[name]
        if function is not None and "wanted" in (bound := getclosurevars(function).nonlocals):
            return str(bound["wanted"])
    return kind(base)


def default(field: "Field[Any]") -> str:
    value = field.default
    if field.default_factory is not MISSING or value in (MISSING, None, "", ()):
        return "required" if value is MISSING and field.default_factory is MISSING else ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return ", ".join(code(each) for each in value)
    if isinstance(value, float):
        return code(f"{value:g}" + (" s" if field.name.endswith("_seconds") else ""))
    return code(value)


def written(field: "Field[Any]") -> str:
    """The name in files: spans carry `_seconds` in specs only."""
    return field.name.removesuffix("_seconds")


def field_table(spec: type, section: str, leave_out: Iterable[str] = (), **more: str) -> str:
    """All fields of a spec; `more` are fields that a file has and the spec has not."""
    hints = get_type_hints(spec, include_extras=True)
    rows = [
        (code(written(each)), kind(hints[each.name]), default(each))
        for each in fields(spec)
        if each.name not in set(leave_out)
    ]
    rows += [(code(name), accepted, "") for name, accepted in more.items()]
    described = [(*row, describe(section, row[0].strip("`"))) for row in sorted(rows, key=_by_name)]
    return table(("field", "value", "default", "meaning"), described)


def _by_name(row: tuple[str, ...]) -> str:
    return row[0].strip("`")


_NOT_IN_FILES = ("name", "schedules", "title", "instructions", "source_path")


def render_skill() -> str:
    schedules = {"schedule": "schedule text", "schedules": "table of schedules", "name": "text"}
    schedules |= {"image": "text"}
    runtime, times = specs.RuntimeSpec, specs.ScheduleSpec
    own = {"jitter": "duration, or a percentage of an interval up to `10%`"}
    own |= {"type": "`cron`, `interval`, `webhook`, `chat`", "interval": "duration: `15m`"}
    not_written = ("name", "jitter_percent", "jitter_seconds")
    return page(
        "SKILL.md fields",
        "agents_app/skills/specs.py",
        _SKILL,
        "## Agent",
        field_table(specs.AgentSpec, "agent", _NOT_IN_FILES, **schedules),
        "## `schedules.NAME`",
        "Each key of `schedules` is the name of a schedule.",
        field_table(times, "schedule", not_written, **own),
        "## `runtime`",
        field_table(runtime, "runtime"),
        "## `sandbox`",
        "`sandbox: off` is short for `sandbox: {mode: off}`. "
        "See [Isolate runs](../guides/isolation.md).",
        field_table(specs.SandboxSpec, "sandbox"),
        "## `budget`",
        "Tokens that were sent, received and cached count alike.",
        field_table(specs.BudgetSpec, "budget"),
        "## `hooks`",
        field_table(specs.HooksSpec, "hooks"),
        "### `hooks.after_run` and `hooks.on_error`",
        "Lists of hooks; a text is short for a command of type `shell`. "
        "See [Act when a run has ended](../guides/hooks.md).",
        field_table(specs.EventHookSpec, "event_hook"),
        "## `webhooks`",
        "Filters stand beside `source`; the names of the filters depend on the provider.",
        field_table(specs.WebhookSpec, "webhook"),
        _filters(),
        *_work_sources(),
    )


def _work_sources() -> tuple[str, ...]:
    from agents_app.work_sources.kinds import KINDS
    from agents_app.work_sources.kinds.settings import SourceLabels

    parts = [
        "## `work_source`",
        "`type` selects the system; the other fields depend on it. "
        "See [Let an agent work through issues](../guides/work-sources.md).",
    ]
    for name, kind in KINDS.items():
        parts += [f"### `type: {name}`", field_table(kind.settings, f"source_{name}")]
    return (*parts, "### Labels of a work source", field_table(SourceLabels, "source_labels"))


def _filters() -> str:
    from agents_app.webhooks.providers import PROVIDERS

    rows = [
        (code(name), ", ".join(code(each) for each in provider.filters))
        for name, provider in PROVIDERS.items()
    ]
    return "### Filters\n\n" + table(("provider", "filters"), rows)


def config_sections() -> tuple[str, ...]:
    return (
        "### Project",
        field_table(specs.ProjectSpec, "project"),
        "### `[budget]`",
        field_table(specs.ProjectBudgetSpec, "project_budget"),
        "### `[gateway]`",
        field_table(specs.GatewaySpec, "gateway"),
        "### `[local]`",
        field_table(specs.LocalSpec, "local"),
        "### `[webhooks.NAME]`",
        "Each key of `webhooks` is the name of a webhook source. Options of the provider, such as "
        "the name of a header, stand beside these fields.",
        field_table(specs.WebhookSourceSpec, "source", ("name", "options")),
        "### `[[notify]]`",
        field_table(specs.NotifySpec, "notify"),
    )
