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
    verdict,
)
from agents_app.runners.container import CONTAINERS
from agents_app.runners.container_options import RUN, TRACE, our_label
from agents_app.runners.docker_engine import ENGINE, EngineAway, EngineRefused, Found, NotThere
from agents_app.runners.environment import PASSED_ON, base_environment, run_environment
from agents_app.runners.guard import GUARD, become_subreaper, open_line
from agents_app.runners.kinds import RUNNERS
from agents_app.runners.leftovers import end_container, end_leftovers
from agents_app.runners.process import ProcessRunner
from agents_app.runners.procfs import TICKS_PER_SECOND, look_at

__all__ = [
    "CONTAINERS",
    "ENGINE",
    "GUARD",
    "PASSED_ON",
    "RUN",
    "RUNNERS",
    "TICKS_PER_SECOND",
    "TRACE",
    "EngineAway",
    "EngineRefused",
    "Found",
    "Mount",
    "NotThere",
    "Outcome",
    "OutputSink",
    "ProcessRunner",
    "RunControl",
    "RunSpec",
    "Runner",
    "Runtime",
    "base_environment",
    "become_subreaper",
    "end_container",
    "end_leftovers",
    "look_at",
    "open_line",
    "our_label",
    "run_environment",
    "verdict",
]
