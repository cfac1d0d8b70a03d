"""Agents of a project of another system, which Drover reads as specs, as agents to write."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

from agents_app.conf import PROGRAM
from agents_app.formats.imported import (
    ImportContext,
    ImportedAgent,
    ImportedSchedule,
    looks_secret,
    no_fires,
)
from agents_app.formats.old_fires import TriggerFires
from agents_app.formats.report import ReportLine
from agents_app.harness import HARNESSES
from agents_app.skills import AgentSpec, ScheduleSpec, WorkSourceSpec
from agents_app.triggers import UNTIMED_TYPES
from agents_app.work_sources.kinds import KINDS

# Fields of the spec that are written in another way than by their name and value.
_OF_AGENTS = {
    *("name", "instructions", "source_path", "schedules", "description", "command", "harness"),
    *("scale", "title", "env", "runtime", "timeout_seconds", "work_source"),
}
_OF_SCHEDULES = {
    *("name", "expression", "timezone", "work_source", "jitter_percent", "jitter_seconds"),
}
_SECONDS = "_seconds"


class SpecAgents:
    """Turns specs into agents to write; `report` collects what is left out."""

    def __init__(self, root: Path, context: ImportContext, hidden: Collection[str] = ()) -> None:
        """`hidden` are variables of the old system whose values must not be written."""
        self._root, self._context = root, context
        self._references = tuple(f"${{{name}}}" for name in hidden)
        self.report: list[ReportLine] = []

    def agent(self, spec: AgentSpec) -> ImportedAgent:
        fields_of_agent = {
            **({"name": spec.title} if spec.title else {}),
            **_command(spec),
            # The project that the agent is written into may have another default.
            "timeout": _number(spec.timeout_seconds),
            **_given(spec, _OF_AGENTS),
            **_runtime(spec),
            **_work_source(spec.work_source),
            **self._env(spec),
        }
        for name, value in fields_of_agent.items():
            if _has_null(value):
                why, advice = "has a value null, which is left out", "set another value"
                self._say(spec, name, why, advice)
        return ImportedAgent(
            key=spec.name,
            name=spec.name,
            file=self._label(spec),
            line=0,
            description=spec.description,
            harness=spec.harness or "",
            scale=spec.scale,
            body=spec.instructions,
            fields={name: _without_null(value) for name, value in fields_of_agent.items()},
            schedules=tuple(self._schedule(one) for one in spec.schedules),
        )

    def _schedule(self, spec: ScheduleSpec) -> ImportedSchedule:
        zone = spec.timezone or self._context.host_zone
        fires = TriggerFires(spec.expression, zone, spec.gap, spec.overlap_hour)
        return ImportedSchedule(
            name=spec.name,
            old=spec.expression,
            expression=spec.expression,
            timezone="" if spec.expression.removeprefix("@") in UNTIMED_TYPES else zone,
            settings={
                **_given(spec, _OF_SCHEDULES),
                **_jitter(spec),
                **_work_source(spec.work_source),
            },
            old_fires=fires if spec.enabled else no_fires,
        )

    def _env(self, spec: AgentSpec) -> dict[str, Any]:
        kept = {}
        for name, value in spec.env.items():
            if looks_secret(name) or any(reference in value for reference in self._references):
                why = "looks like a secret, which no file of the project should have; left out"
                advice = f"store it with `{PROGRAM} credential set` and name it in `credentials`"
                self._say(spec, f"env.{name}", why, advice)
            else:
                kept[name] = value
        return {"env": kept} if kept else {}

    def _say(self, spec: AgentSpec, field: str, why: str, advice: str) -> None:
        self.report.append(ReportLine(self._label(spec), 0, field, why, advice))

    def _label(self, spec: AgentSpec) -> str:
        return spec.source_path.relative_to(self._root).as_posix()


def _command(spec: AgentSpec) -> dict[str, Any]:
    """The command, unless it is that of the harness."""
    harness = HARNESSES.get(spec.harness or "")
    is_of_harness = harness and spec.command == harness.argv(spec.model, spec.harness_args)
    return {"command": list(spec.command)} if spec.command and not is_of_harness else {}


def _runtime(spec: AgentSpec) -> dict[str, Any]:
    """With its type: an image alone would choose a container."""
    table = _given(spec.runtime)
    return {"runtime": {"type": spec.runtime.type, **table}} if table else {}


def _jitter(spec: ScheduleSpec) -> dict[str, Any]:
    if spec.jitter_percent:
        return {"jitter": f"{spec.jitter_percent:g}%"}
    return {"jitter": f"{spec.jitter_seconds:g}s"} if spec.jitter_seconds else {}


def _work_source(spec: WorkSourceSpec | None) -> dict[str, Any]:
    if spec is None:
        return {}
    settings = _given_of_table(KINDS[spec.type].settings, spec.settings)
    return {"work_source": {"type": spec.type, **settings}}


# --- values ---------------------------------------------------------------------------------


def _given(spec: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields whose values are not the defaults, with their names in files."""
    values = {one.name: getattr(spec, one.name) for one in fields(spec)}
    return dict(_changed(type(spec), values, without))


def _given_of_table(kind: type, table: Mapping[str, Any]) -> dict[str, Any]:
    """The same for the settings of a work source, which are a table of plain values."""
    return dict(_changed(kind, table, ()))


def _changed(
    kind: type, values: Mapping[str, Any], without: Collection[str]
) -> Iterator[tuple[str, Any]]:
    assert is_dataclass(kind)
    for one in fields(kind):
        value = _plain(values.get(one.name))
        if one.name in without or value is None or value == _plain(_default(one)):
            continue
        if one.name.endswith(_SECONDS):
            value = _number(value)
        yield one.name.removesuffix(_SECONDS), value


def _default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return None if one.default is MISSING else one.default


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _given(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _number(seconds: float) -> float:
    return int(seconds) if float(seconds).is_integer() else seconds


def _has_null(value: Any) -> bool:
    """TOML has no null."""
    if isinstance(value, Mapping):
        return any(_has_null(item) for item in value.values())
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in value if item is not None]
    return value
