"""The adapters of the suites hooks.filter and hooks.exec: hooks are run as those of a run are."""

import os
import tempfile
from pathlib import Path
from typing import Any

from agents_app.launch import EventHook, HookTools, TimedRunner, applies, run_event_hooks
from agents_app.launch.hook_context import EVENTS
from agents_app.runners import RUNNERS
from agents_app.runners.base import RunControl, RunSpec
from agents_app.runs import Ending
from tests.agents_app.output.test_watchers import Sink

Case = dict[str, Any]


def _hook(table: Case) -> EventHook:
    """In these files times are milliseconds."""
    values = {**table, "on_events": tuple(table.get("on_events") or ())}
    if "timeout" in values:
        values["timeout_seconds"] = values.pop("timeout") / 1000
    return EventHook(**values)


def hooks_filter(case: Case) -> bool:
    return applies(_hook(case["hook"]), case["context"])


def hooks_exec(case: Case) -> Case:
    context = {"event": case["event"], "job": {"id": "1"}, "result": {"success": True}}
    context |= {"agent": {"id": "a"}, "metadata": {}, **case.get("context", {})}
    state = next(state for state, event in EVENTS.items() if event == case["event"])
    with tempfile.TemporaryDirectory() as directory:
        spec = RunSpec(
            run_id=1,
            argv=(),
            env={"PATH": os.environ["PATH"]},
            cwd=Path(directory),
            prompt_file=Path(directory) / "prompt.md",
            timeout_seconds=60,
        )
        runner = TimedRunner(RUNNERS["process"], RunControl(), 60)
        tools = HookTools(runner, spec, Sink(), str, {}, lambda _: None)
        hooks = [_hook(hook) for hook in case["hooks"]]
        summary = run_event_hooks("after_run", hooks, context, Ending(state), tools)
    return {
        "success": not summary.problems,
        "total": summary.total,
        "ok": summary.succeeded,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "should_fail_job": bool(summary.fatal),
    }


HOOKS_ADAPTERS = {"hooks.filter": hooks_filter, "hooks.exec": hooks_exec}
