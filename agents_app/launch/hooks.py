"""Runs the program, hooks and injected commands of a run under one time limit."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents_app.output import MARKER_STREAM, STDOUT
from agents_app.runners import Outcome, OutputSink, RunControl, Runner, RunSpec, verdict
from agents_app.runs import Ending
from agents_app.text import as_text

INJECTION_SECONDS = 60.0
HOOK_SECONDS = 300.0
MAX_INJECTED_BYTES = 64 * 1024
MAX_ERROR_LENGTH = 500
MAX_SHOWN_LENGTH = 200


class TimedRunner:
    """A runner with one time limit for all commands that it runs."""

    def __init__(self, runner: Runner, control: RunControl, limit_seconds: float) -> None:
        self._runner = runner
        self.control = control
        self._limit_seconds = limit_seconds
        self._ends_at = time.monotonic() + limit_seconds

    @property
    def time_is_over(self) -> bool:
        return time.monotonic() >= self._ends_at

    def run(self, spec: RunSpec, sink: OutputSink, max_seconds: float | None = None) -> Outcome:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            return Outcome("timed_out", None, self._timed_out())
        seconds = left if max_seconds is None else min(left, max_seconds)
        outcome = self._runner.run(replace(spec, timeout_seconds=seconds), self.control, sink)
        if outcome.kind == "timed_out" and seconds == left:
            return replace(outcome, error=self._timed_out())
        return outcome

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    def for_post_hooks(self, grace_seconds: float) -> "TimedRunner | None":
        """The runner for hooks after the program.

        After a stop or a timeout it has `grace_seconds` of its own; None if the run was stopped
        without a grace period."""
        request = self.control.request
        if request is not None and request.grace_seconds == 0:
            return None
        if request is None and self._ends_at - time.monotonic() >= grace_seconds:
            return self
        return TimedRunner(self._runner, RunControl() if request else self.control, grace_seconds)

    def _timed_out(self) -> str:
        return f"timed out after {self._limit_seconds:g} s"


# --- commands in instructions ---------------------------------------------------------------


class _CollectingSink:
    """Keeps the first bytes of stdout and of stderr."""

    def __init__(self) -> None:
        self._stdout, self._stderr = bytearray(), bytearray()

    def feed(self, stream: int, data: bytes, _at: float) -> None:
        kept = self._stdout if stream == STDOUT else self._stderr
        kept += data[: MAX_INJECTED_BYTES + 1 - len(kept)]

    def flush(self) -> None: ...

    @property
    def output(self) -> str:
        cut = "\n[... cut]" if len(self._stdout) > MAX_INJECTED_BYTES else ""
        return as_text(bytes(self._stdout[:MAX_INJECTED_BYTES])).rstrip() + cut

    @property
    def error(self) -> str:
        return " ".join(as_text(bytes(self._stderr)).split())[:MAX_ERROR_LENGTH]


def command_output(runner: TimedRunner, spec: RunSpec, command: str) -> str:
    """The output of a command in the instructions; a failure is returned as text, too."""
    collected = _CollectingSink()
    outcome = runner.run(shell_spec(spec, command), collected, INJECTION_SECONDS)
    if outcome.kind == "exited" and outcome.exit_code == 0:
        return collected.output
    error = verdict(outcome).error or f"exit code {outcome.exit_code}"
    return f"[Error: {': '.join(filter(None, (error, collected.error)))}]"


# --- hooks ----------------------------------------------------------------------------------


def run_pre_hooks(
    runner: TimedRunner, spec: RunSpec, commands: Sequence[str], sink: OutputSink
) -> Ending | None:
    """The ending of the run if a hook fails; None if all succeeded."""
    for command in commands:
        outcome = _run_hook(runner, spec, "pre", command, sink)
        if outcome.kind in ("stopped", "unavailable", "lost"):
            return Ending(outcome.kind, error=outcome.error)
        if outcome.kind == "timed_out" and runner.time_is_over:
            return Ending("timed_out", error=outcome.error)
        if problem := hook_problem(outcome):
            return Ending("failed", error=f"hooks.pre: {shown(command)}: {problem}")
    return None


def run_post_hooks(
    runner: TimedRunner, spec: RunSpec, commands: Sequence[str], sink: OutputSink, ending: Ending
) -> list[str]:
    """Run all hooks, whether the run or another hook failed or not; returns the problems."""
    env = ending_variables(ending)
    problems = []
    for command in commands:
        post_runner = runner.for_post_hooks(spec.grace_seconds)
        if post_runner is None:
            break
        outcome = _run_hook(post_runner, spec, "post", command, sink, env)
        if problem := hook_problem(outcome):
            problems.append(f"hooks.post: {shown(command)}: {problem}")
    return problems


def ending_variables(ending: Ending) -> dict[str, str]:
    """The variables of hooks that run after the program."""
    return {
        "DROVER_RUN_STATE": ending.state,
        "DROVER_EXIT_CODE": "" if ending.exit_code is None else str(ending.exit_code),
        "DROVER_RUN_ERROR": ending.error.replace("\0", "")[:1000],
    }


def _run_hook(
    runner: TimedRunner,
    spec: RunSpec,
    when: str,
    command: str,
    sink: OutputSink,
    env: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a hook; its output is in the log of the run, between two marker lines."""
    write_marker(sink, f"hooks.{when}: {shown(command)}")
    outcome = runner.run(shell_spec(spec, command, env), sink, HOOK_SECONDS)
    write_marker(sink, f"hooks.{when}: {hook_problem(outcome) or 'done'}")
    return outcome


def hook_problem(outcome: Outcome) -> str:
    if outcome.kind == "exited" and outcome.exit_code == 0:
        return ""
    # Exit codes have special meanings only for the program of a run, not for hooks.
    if outcome.kind == "exited" and (outcome.exit_code or 0) > 0:
        return f"exit code {outcome.exit_code}"
    return verdict(outcome).error


def write_marker(sink: OutputSink, text: str) -> None:
    """A line of Drover in the log of a run."""
    sink.feed(MARKER_STREAM, f"[{text}]\n".encode(), time.time())


def shell_spec(spec: RunSpec, command: str, env: Mapping[str, str] | None = None) -> RunSpec:
    return replace(
        spec,
        argv=("sh", "-c", command),
        env={**spec.env, **(env or {})},
        adoptable=False,
        messages_on_stdin=False,
    )


def shown(command: str) -> str:
    return " ".join(command.split())[:MAX_SHOWN_LENGTH]
