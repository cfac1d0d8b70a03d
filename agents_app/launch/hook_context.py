"""The hooks of an agent as values, the context of hooks with events, and which apply; pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from agents_app.clock import iso_milliseconds
from agents_app.runs import Ending

# What hooks call the states in which a run ends. A run in another state is not at its end: its work
# item waits again, or its container is gone and nothing is known about its result.
EVENTS = {
    "succeeded": "completed",
    "failed": "failed",
    "timed_out": "timeout",
    "stopped": "cancelled",
}
ERROR_EVENTS = frozenset({"failed", "timeout"})
METADATA_FILE = "metadata.json"
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")

HookContext = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHook:
    """An entry of `hooks.after_run` or `hooks.on_error`; the fields are those of EventHookSpec."""

    type: str = "shell"
    name: str = ""
    command: str = ""
    url: str = ""
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    channel_id: str = ""
    bot_token_env: str = ""
    message: str = ""
    timeout_seconds: float | None = None
    on_events: tuple[str, ...] = ()
    when: str = ""
    continue_on_error: bool = True


@dataclass(frozen=True, slots=True)
class Hooks:
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    after_run: tuple[EventHook, ...] = ()
    on_error: tuple[EventHook, ...] = ()
    metadata_file: str = METADATA_FILE
    # Of requests only.
    credentials: tuple[str, ...] = ()

    @property
    def have_events(self) -> bool:
        return bool(self.after_run or self.on_error)


def hooks_of(stored: Mapping[str, Any]) -> Hooks:
    """From the column `hooks` of an agent."""
    return Hooks(
        tuple(stored.get("pre", ())),
        tuple(stored.get("post", ())),
        tuple(map(_event_hook, stored.get("after_run", ()))),
        tuple(map(_event_hook, stored.get("on_error", ()))),
        stored.get("metadata_file") or METADATA_FILE,
        tuple(stored.get("credentials", ())),
    )


def _event_hook(stored: Mapping[str, Any]) -> EventHook:
    known = {each.name for each in fields(EventHook)}
    values = {name: value for name, value in stored.items() if name in known}
    return EventHook(**{**values, "on_events": tuple(stored.get("on_events") or ())})


# --- the context ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HookFacts:
    """What the context contains besides the ending of the run."""

    run_id: int
    agent: str
    schedule: str
    started_at: datetime
    ended_at: datetime
    output: str
    metadata: Mapping[str, Any]


def build_context(ending: Ending, facts: HookFacts) -> HookContext:
    """The names and the shape are those of herdctl, whose hooks are scripts that people have."""
    duration = max(0.0, (facts.ended_at - facts.started_at).total_seconds())
    job = {
        "id": str(facts.run_id),
        "agentId": facts.agent,
        **({"scheduleName": facts.schedule} if facts.schedule else {}),
        "startedAt": iso_milliseconds(facts.started_at),
        "completedAt": iso_milliseconds(facts.ended_at),
        "durationMs": round(duration * 1000),
    }
    result = {
        "success": ending.state == "succeeded",
        "output": facts.output,
        **({"error": ending.error} if ending.error else {}),
    }
    return {
        "event": EVENTS[ending.state],
        "job": job,
        "result": result,
        "agent": {"id": facts.agent, "name": facts.agent},
        "metadata": dict(facts.metadata),
    }


def as_json(context: HookContext) -> str:
    """Without spaces, as herdctl writes it: scripts search for '"event":"completed"'."""
    return json.dumps(context, ensure_ascii=False, separators=(",", ":"))


# --- which hooks apply ----------------------------------------------------------------------


def applies(hook: EventHook, context: Mapping[str, Any]) -> bool:
    if hook.on_events and context["event"] not in hook.on_events:
        return False
    return not hook.when or _is_set(_value_at(context, hook.when))


def _value_at(context: Any, path: str) -> Any:
    """The value at a path of keys, indexes and `length` of lists; None if there is none."""
    for part in path.split("."):
        if isinstance(context, Mapping):
            context = context.get(part)
        elif isinstance(context, list) and _INDEX.fullmatch(part):
            context = context[int(part)] if int(part) < len(context) else None
        elif isinstance(context, list) and part == "length":
            context = len(context)
        else:
            return None
    return context


def _is_set(value: Any) -> bool:
    """As in JavaScript: an empty list or table is set, an empty text and zero are not."""
    return isinstance(value, Mapping | list) or bool(value)
