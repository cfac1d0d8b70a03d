"""One agent of herdctl as an AgentSpec, and a report of what has no counterpart; pure."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents_app.conf import PROGRAM
from agents_app.formats.herdctl.docker import UNHONOURED, runtime_of
from agents_app.formats.herdctl.hooks import HookTranslation
from agents_app.formats.herdctl.interpolate import interpolate
from agents_app.formats.herdctl.variables import undefined_reason
from agents_app.formats.herdctl.work_source import work_source_fields
from agents_app.formats.report import ReportLine
from agents_app.skills import (
    AgentSpec,
    Document,
    KeyPath,
    LocalSpec,
    Problems,
    ProjectSpec,
    SourcePlace,
    build_agent,
    dotted,
)

DEFAULT_PROMPT = "Execute your configured task."
# herdctl lets a job run for as long as it likes.
TIMEOUT_SECONDS = 86_400.0
NOT_YET = "is not honoured yet"
_KEPT_BY_DROVER = "Drover keeps the value with the agent"

# Arguments of Claude Code, with the value as one word of a list.
_ARGUMENTS = {
    "max_turns": "--max-turns",
    "permission_mode": "--permission-mode",
    "tools": "--tools",
    "allowed_tools": "--allowedTools",
    "denied_tools": "--disallowedTools",
    "setting_sources": "--setting-sources",
}
# Kept with the agent: why, and what to do until the field is honoured.
_KEPT = {
    "working_directory": (
        NOT_YET,
        "a run and its hooks start in a new directory; name files by full paths",
    ),
    "repo": (NOT_YET, "let the instructions clone the repository"),
    "session": (f"{NOT_YET}: every run starts a new session", _KEPT_BY_DROVER),
    "mcp_servers": (NOT_YET, "configure the servers in the settings of Claude Code"),
    "plugins": (NOT_YET, "install the plugins in the settings of Claude Code"),
    "chat": ("Drover has no chat connections", "start the agent with a webhook source"),
}
# Fields of schedules that are kept, and the field of agents that means the same.
_LATER_OF_SCHEDULES = {"resume_session": "session"}
_UNSAFE = re.compile("[^a-z0-9]+")


def agent_name(qualified: str) -> str:
    """`fleet.Some_Agent` as a name in Drover: `fleet-some-agent`."""
    return _UNSAFE.sub("-", qualified.lower()).strip("-")


class AgentTranslation:
    """The fields of one merged agent document, in terms of Drover."""

    def __init__(self, document: Document, env: Mapping[str, str]) -> None:
        self.document = document
        self.env = env
        self.report: list[ReportLine] = []
        self.problems = Problems()
        self.fields: dict[str, Any] = {}
        self.places: dict[KeyPath, SourcePlace] = dict(document.places)

    def spec(self, name: str, path: Path, project: ProjectSpec) -> AgentSpec:
        """The agent; raises a SkillError with all errors."""
        self.problems.agent = name
        own_timeout = project.local.timeout_seconds != LocalSpec().timeout_seconds
        timeout = project.local.timeout_seconds if own_timeout else TIMEOUT_SECONDS
        self.fields |= {"harness": "claude-code", "timeout_seconds": timeout}
        self._set("description", ("description",), self._value("description", ""))
        self._set_program()
        self._set_scale()
        self._set_runtime()
        self._set_schedules()
        self._set_work_source()
        self._set_hooks()
        self._keep()
        instructions = self._instructions()
        self.problems.raise_any()
        fields = Document(self.document.source, self.fields, self.places)
        return build_agent(name, instructions, path, fields, project)

    # --- values and positions -------------------------------------------------------------------

    def _value(self, name: str, default: Any = None) -> Any:
        """The value of a field with variables replaced."""
        given = self.document.data.get(name)
        return default if given is None else self._interpolated(given, (name,))

    def _interpolated(self, value: Any, at: KeyPath) -> Any:
        return interpolate(value, self.env, at, self._undefined)

    def _undefined(self, variable: str, at: KeyPath) -> None:
        self.problems.add(self.document.place(at), f"{dotted(at)}: {undefined_reason(variable)}")

    def _set(self, name: str, at: KeyPath, value: Any) -> None:
        """Set a field of Drover; errors in it are reported at the position of herdctl's field."""
        self.fields[name] = value
        self.places[(name,)] = self.document.place(at)

    def say(self, at: KeyPath, why: str, advice: str) -> None:
        place = self.document.place(at)
        self.report.append(ReportLine(place.path, place.line or 0, dotted(at), why, advice))

    # --- fields ---------------------------------------------------------------------------------

    def _instructions(self) -> str:
        identity = self._value("identity", {})
        titles = {"name": "Your name", "role": "Your role", "personality": "Your personality"}
        about = [f"{title}: {identity[key]}" for key, title in titles.items() if identity.get(key)]
        parts = ("\n".join(about), self._value("system_prompt"))
        return "\n\n".join(part for part in parts if part)

    def _set_program(self) -> None:
        session = self._value("session", {})
        model = self._value("model") or session.get("model") or ""
        self._set("model", ("model",), model)
        arguments: list[str] = []
        for name, option in _ARGUMENTS.items():
            value = self._value(name)
            if value == "delegate":
                why = "is not a mode of the program `claude`; the mode is `default`"
                self.say((name,), why, "choose another mode")
                continue
            if name == "max_turns" and value is None:
                value = session.get("max_turns")
            words = value if isinstance(value, list) else [value] if value is not None else []
            # Only an empty list of `tools` has a meaning: none.
            if words or (name == "tools" and value is not None):
                # With `=`: a value that starts with a hyphen is not another option.
                arguments.append(f"{option}={','.join(map(str, words))}")
        self.fields["harness_args"] = arguments
        if self.document.data.get("runtime") == "sdk":
            why = "Drover starts the program `claude`, as `runtime: cli` does"
            self.say(("runtime",), why, "log in with `claude`, or give the agent an API key")

    def _set_scale(self) -> None:
        instances = self._value("instances", {})
        if "max_concurrent" in instances:
            self._set("scale", ("instances", "max_concurrent"), instances["max_concurrent"])

    def _set_runtime(self) -> None:
        docker = self._value("docker", {})
        self._set("runtime", ("docker",), runtime_of(docker))
        if not docker.get("enabled"):
            return
        for name in ("image", "memory", "network", "pids_limit"):
            self.places["runtime", name] = self.document.place(("docker", name))
        self._set("env", ("docker", "env"), docker.get("env", {}))
        for name, (same, why, advice) in UNHONOURED.items():
            if docker.get(name, same) != same:
                self.say(("docker", name), why, advice)
        if docker.get("network") == "host":
            why = "a container never has the network of the machine; it has `bridge`"
            self.say(("docker", "network"), why, "reach the machine by its address")

    def _set_schedules(self) -> None:
        schedules = self.document.data.get("schedules") or {}
        self.fields["schedules"] = {
            name: self._schedule(name, table) for name, table in schedules.items()
        }
        if self.document.data.get("default_prompt"):
            why = "is the prompt of schedules that have none; a manual run has the prompt you give"
            self.say(("default_prompt",), why, f"{PROGRAM} run AGENT --prompt TEXT")

    def _schedule(self, name: str, raw: dict[str, Any]) -> dict[str, Any]:
        at: KeyPath = ("schedules", name)
        table = self._interpolated(raw, at)
        kind = table["type"]
        times = {"interval": table.get("interval")}
        times["cron"] = table.get("cron") or table.get("expression")
        for other, given in times.items():
            if given and other != kind:
                why = f"has no effect: the type of the schedule is {kind}"
                self.say((*at, other), why, "remove the field, or change the type")
        if kind in ("webhook", "chat"):
            why = "the schedule is kept and never fires by time (unsupported_type)"
            self.say((*at, "type"), why, "subscribe the agent to a webhook source")
        if table.get("outputToFile"):
            self.say((*at, "outputToFile"), "Drover keeps all output", f"{PROGRAM} logs RUN")
        for later, field in _LATER_OF_SCHEDULES.items():
            if table.get(later):
                self.say((*at, later), *_KEPT[field])
        prompt = table.get("prompt") or self._value("default_prompt") or DEFAULT_PROMPT
        time = {kind: times[kind]} if times.get(kind) else {}
        source = self._work_source(table.get("work_source"), (*at, "work_source"))
        enabled = table.get("enabled", True)
        return {"type": kind, **time, "prompt": prompt, "enabled": enabled, **source}

    def _work_source(self, table: dict[str, Any] | None, at: KeyPath) -> dict[str, Any]:
        source = work_source_fields(table, self.document, at, self.say) if table else None
        return {"work_source": source} if source else {}

    def _set_work_source(self) -> None:
        self.fields |= self._work_source(self._value("work_source"), ("work_source",))

    def _set_hooks(self) -> None:
        translation = HookTranslation(self.document, self.env, self._interpolated, self.say)
        self.fields["hooks"] = translation.fields()
        name = self._value("metadata_file")
        if name is None:
            return
        path = "/".join(part for part in name.split("/") if part != ".")
        if path.startswith("/") or not path or ".." in path.split("/") or "" in path.split("/"):
            why = "is read below the directory of a run only; metadata.json is read instead"
            self.say(("metadata_file",), why, "name a file without a leading / and without ..")
        else:
            self._set("metadata_file", ("metadata_file",), path)

    def _keep(self) -> None:
        """Keep what is not honoured, with the references to variables instead of their values."""
        data = self.document.data
        kept = {name: data[name] for name in _KEPT if data.get(name)}
        for name, value in kept.items():
            # `model` and `max_turns` of a session are honoured.
            if name != "session" or (isinstance(value, dict) and value.get("timeout")):
                self.say((name,), *_KEPT[name])
        of_schedules = {
            name: {later: table[later] for later in _LATER_OF_SCHEDULES if table.get(later)}
            for name, table in (data.get("schedules") or {}).items()
        }
        if of_schedules := {name: table for name, table in of_schedules.items() if table}:
            kept["schedules"] = of_schedules
        self.fields["metadata"] = {"herdctl": kept} if kept else {}
