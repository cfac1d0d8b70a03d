"""Preparation of a run before its program starts: directory, prompt, environment, hooks.

Belongs here: preparing a RunSpec and cleaning up after it.
Does not belong here: starting processes (runners).
"""

from agents_app.launch.definition import Definition, definition_of
from agents_app.launch.event_hooks import HookSummary, HookTools, run_event_hooks
from agents_app.launch.hook_context import (
    ERROR_EVENTS,
    EVENTS,
    EventHook,
    HookFacts,
    Hooks,
    applies,
    build_context,
)
from agents_app.launch.hooks import (
    TimedRunner,
    command_output,
    run_post_hooks,
    run_pre_hooks,
    write_marker,
)
from agents_app.launch.injection import has_commands, inject
from agents_app.launch.metadata_file import read_metadata_file
from agents_app.launch.prepare import prepare_run
from agents_app.launch.prompt import build_prompt
from agents_app.launch.workdir import (
    leftover_workdirs,
    remove_workdir,
    remove_workdirs,
    signal_directory,
)

__all__ = [
    "ERROR_EVENTS",
    "EVENTS",
    "Definition",
    "EventHook",
    "HookFacts",
    "HookSummary",
    "HookTools",
    "Hooks",
    "TimedRunner",
    "applies",
    "build_context",
    "build_prompt",
    "command_output",
    "definition_of",
    "has_commands",
    "inject",
    "leftover_workdirs",
    "prepare_run",
    "read_metadata_file",
    "remove_workdir",
    "remove_workdirs",
    "run_event_hooks",
    "run_post_hooks",
    "run_pre_hooks",
    "signal_directory",
    "write_marker",
]
