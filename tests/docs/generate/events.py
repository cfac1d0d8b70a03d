"""reference/events.md: every name of a journal entry and of a log line, found in the code."""

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field

from agents_app.runs.lifecycle import RUN_MOVES
from tests.codebase.source import Module, calls, modules
from tests.docs.generate.markdown import code, describe, descriptions, page, table

EVENT = re.compile(r"[a-z][a-z_]*\.[a-z][a-z_]*")
_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
_ERROR = {"exception": "error"}
# Logged through a variable that holds the method.
_INDIRECT = {
    "api.answered": {"debug", "info"},
    "webhook.secret_missing": {"warning"},
    "webhook.source_unusable": {"warning"},
}
_INTRODUCTION = """
An event has a name of the form `noun.verb`. Names keep their spelling between versions; the
CHANGELOG says so when one changes.

**Journal entries** are rows that are written in the transaction that makes them true. The Events
page, `GET /v1/events`, `/v1/notifications/stream` and `[[notify]]` read them. Each has a tenant,
a time, and, where they apply, an agent, a run and a detail text. After the commit each entry is
also one log line with the same name: at level `debug` for `run.admitted`, `warning` for losses,
`info` otherwise. Lines about a run have the name of its `agent`, its `trigger` and, of a scheduled
run, the `schedule_id` and `firing_id`.

**Log lines** are JSON objects on standard error (`DROVER_LOG_FORMAT=human` prints text) with
`timestamp`, `level`, `logger`, `event` and the fields below. Lines about a run also have its
`trace_id`, which a scheduled run shares with its firing. `firing.claimed`, `firing.started`,
`firing.queued` and `firing.skipped` have `trace_id`, `tenant_id`, `agent`, `trigger`, `schedule_id`
and `firing_id`; more than 100 firings at once are one line with `count` and `schedule_ids`.
"""


@dataclass
class LogEvent:
    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


def logged() -> dict[str, LogEvent]:
    found: dict[str, LogEvent] = defaultdict(LogEvent)
    for module in modules():
        for call in calls(module):
            function = ast.unparse(call.func)
            name = _event(call)
            owner, _, level = function.rpartition(".")
            if (name and owner.lstrip("_") == "log" and level in _LEVELS) or name in _INDIRECT:
                one = found[name]
                one.levels |= _INDIRECT.get(name) or {_ERROR.get(level, level)}
                one.fields |= {each.arg for each in call.keywords if each.arg}
                one.files.add(_file(module))
    return dict(found)


def recorded() -> dict[str, set[str]]:
    """Names of journal entries and the files that record them."""
    known = descriptions("journal")
    found: dict[str, set[str]] = {f"run.{state}": set() for state in _endings()}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and node.value in known:
                found.setdefault(node.value, set()).add(_file(module))
    return found


def journal_calls() -> dict[str, str]:
    """The name of each journal entry that is made with a literal name, and where."""
    return {
        name: f"{_file(module)}:{call.lineno}"
        for module in modules()
        for call in calls(module)
        if ast.unparse(call.func).rpartition(".")[2] == "JournalEntry" and (name := _event(call))
    }


def _endings() -> set[str]:
    return {str(state) for moves in RUN_MOVES.values() for state in moves} - {"running"}


def _event(call: ast.Call) -> str:
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")]
    constants = (each.value for each in given if isinstance(each, ast.Constant))
    return next((e for e in constants if isinstance(e, str) and EVENT.fullmatch(e)), "")


def _file(module: Module) -> str:
    return module.path.relative_to(module.path.parents[len(module.name.split(".")) - 1]).as_posix()


def render() -> str:
    entries = [(code(name), describe("journal", name)) for name in sorted(recorded())]
    lines = [
        (
            code(name),
            ", ".join(sorted(one.levels)),
            ", ".join(code(each) for each in sorted(one.fields)),
            describe("log", name),
        )
        for name, one in sorted(logged().items())
    ]
    return page(
        "Events",
        "the journal entries and log calls of the code",
        _INTRODUCTION,
        "## Journal entries",
        table(("name", "meaning"), entries),
        "## Log lines",
        table(("name", "level", "fields", "meaning"), lines),
    )
