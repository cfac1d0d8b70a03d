"""The ways to run a program: a child process, a process of another user, a container.

Belongs here: code that takes a RunSpec and returns an Outcome.
Does not belong here: tables, clocks and decisions about runs.
"""

from agents_app.runners.base import (
    Mount,
    Outcome,
    OutputSink,
    RunControl,
    Runner,
    RunSpec,
    Runtime,
    Sandbox,
    is_below,
    verdict,
)
from agents_app.runners.containers import (
    CONTAINER_RUNNER,
    DOCKER,
    RUN_LABEL,
    TRACE_LABEL,
    EngineNotFound,
    EngineRefused,
    EngineUnavailable,
    FoundContainer,
    installation_label,
)
from agents_app.runners.environment import PASSED_ON, base_environment, run_environment
from agents_app.runners.gate import has_gate
from agents_app.runners.guard import GUARD, become_subreaper, open_guard_pipe
from agents_app.runners.host_user import HostUserRunner
from agents_app.runners.leftovers import end_container, end_leftovers
from agents_app.runners.process import ProcessRunner
from agents_app.runners.procfs import TICKS_PER_SECOND, read_process
from agents_app.runners.promises import MEANINGS, NONE, OFF, Kernel, missing_promises, this_kernel

__all__ = [
    "CONTAINER_RUNNER",
    "DOCKER",
    "GUARD",
    "MEANINGS",
    "NONE",
    "OFF",
    "PASSED_ON",
    "RUNNERS",
    "RUN_LABEL",
    "TICKS_PER_SECOND",
    "TRACE_LABEL",
    "EngineNotFound",
    "EngineRefused",
    "EngineUnavailable",
    "FoundContainer",
    "Kernel",
    "Mount",
    "Outcome",
    "OutputSink",
    "ProcessRunner",
    "RunControl",
    "RunSpec",
    "Runner",
    "Runtime",
    "Sandbox",
    "base_environment",
    "become_subreaper",
    "end_container",
    "end_leftovers",
    "has_gate",
    "installation_label",
    "is_below",
    "missing_promises",
    "open_guard_pipe",
    "read_process",
    "run_environment",
    "this_kernel",
    "verdict",
]

# By the agent's `runtime.type`.
RUNNERS: dict[str, Runner] = {
    "process": ProcessRunner(),
    "host-user": HostUserRunner(),
    "container": CONTAINER_RUNNER,
}
