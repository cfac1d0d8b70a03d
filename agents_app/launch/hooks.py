"""Where a run takes place: its runner, its time, and what is run there beside its program."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agents_app.output import MARKER_STREAM, STDOUT
from agents_app.runners import Outcome, OutputSink, RunControl, Runner, RunSpec, verdict
from agents_app.runs import Ending
from agents_app.text import as_text

INJECTION_SECONDS = 60.0
HOOK_SECONDS = 300.0
MOST_INJECTED_BYTES = 64 * 1024
MOST_COMPLAINT = 500
MOST_SHOWN = 200


class Stage:
    """The time limit is one for everything that is run here."""

    def __init__(self, runner: Runner, control: RunControl, limit_seconds: float) -> None:
        self._runner = runner
        self.control = control
        self._limit_seconds = limit_seconds
        self._ends_at = time.monotonic() + limit_seconds

    @property
    def time_is_up(self) -> bool:
        return time.monotonic() >= self._ends_at

    def run(self, spec: RunSpec, sink: OutputSink, most_seconds: float | None = None) -> Outcome:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            return Outcome("timed_out", None, self._timed_out())
        seconds = left if most_seconds is None else min(left, most_seconds)
        outcome = self._runner.run(replace(spec, timeout_seconds=seconds), self.control, sink)
        if outcome.kind == "timed_out" and seconds == left:
            return replace(outcome, error=self._timed_out())
        return outcome

    def after(self, grace_seconds: float) -> "Stage | None":
        """For what must be done even now: if the run was stopped or its time is up, a short time
        of its own; None if it was to end at once."""
        request = self.control.request
        if request is not None and request.grace_seconds == 0:
            return None
        if request is None and self._ends_at - time.monotonic() >= grace_seconds:
            return self
        return Stage(self._runner, RunControl() if request else self.control, grace_seconds)

    def _timed_out(self) -> str:
        return f"timed out after {self._limit_seconds:g} s"


# --- injection ------------------------------------------------------------------------------


class _Collected:
    """The beginning of both streams."""

    def __init__(self) -> None:
        self._kept = {True: bytearray(), False: bytearray()}

    def feed(self, stream: int, data: bytes, _at: float) -> None:
        kept = self._kept[stream == STDOUT]
        kept += data[: MOST_INJECTED_BYTES + 1 - len(kept)]

    def flush(self) -> None: ...

    @property
    def printed(self) -> str:
        data = self._kept[True]
        cut = "\n[... cut]" if len(data) > MOST_INJECTED_BYTES else ""
        return as_text(bytes(data[:MOST_INJECTED_BYTES])).rstrip() + cut

    @property
    def complaint(self) -> str:
        return " ".join(as_text(bytes(self._kept[False])).split())[:MOST_COMPLAINT]


def output_of(stage: Stage, spec: RunSpec, command: str) -> str:
    """What the command prints, for the instructions it stands in; they can read an error, too."""
    collected = _Collected()
    outcome = stage.run(_shell(spec, command), collected, INJECTION_SECONDS)
    judged = verdict(outcome)
    if outcome.kind == "exited" and outcome.exit_code == 0:
        return collected.printed
    error = judged.error or f"exit code {outcome.exit_code}"
    return f"[Error: {': '.join(filter(None, (error, collected.complaint)))}]"


# --- hooks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hooks:
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()


def run_pre_hooks(
    stage: Stage, spec: RunSpec, commands: Sequence[str], sink: OutputSink
) -> Ending | None:
    """How the run ends if one of them fails; None: it goes on."""
    for command in commands:
        outcome = _run_hook(stage, spec, "pre", command, sink)
        if outcome.kind in ("stopped", "unavailable", "lost"):
            return Ending(outcome.kind, error=outcome.error)
        if outcome.kind == "timed_out" and stage.time_is_up:
            return Ending("timed_out", error=outcome.error)
        if problem := _problem(outcome):
            return Ending("failed", error=f"hooks.pre: {_shown(command)}: {problem}")
    return None


def run_post_hooks(
    stage: Stage, spec: RunSpec, commands: Sequence[str], sink: OutputSink, ending: Ending
) -> list[str]:
    """All of them, whatever became of the run and of each other; returns what went wrong."""
    told = {
        "DROVER_RUN_STATE": ending.state,
        "DROVER_EXIT_CODE": "" if ending.exit_code is None else str(ending.exit_code),
        "DROVER_RUN_ERROR": ending.error.replace("\0", "")[:1000],
    }
    problems = []
    for command in commands:
        later = stage.after(spec.grace_seconds)
        if later is None:
            break
        outcome = _run_hook(later, spec, "post", command, sink, told)
        if problem := _problem(outcome):
            problems.append(f"hooks.post: {_shown(command)}: {problem}")
    return problems


def _run_hook(
    stage: Stage,
    spec: RunSpec,
    when: str,
    command: str,
    sink: OutputSink,
    told: Mapping[str, str] | None = None,
) -> Outcome:
    """Its output is the run's, between two remarks."""
    _remark(sink, f"hooks.{when}: {_shown(command)}")
    outcome = stage.run(_shell(spec, command, told), sink, HOOK_SECONDS)
    _remark(sink, f"hooks.{when}: {_problem(outcome) or 'done'}")
    return outcome


def _problem(outcome: Outcome) -> str:
    if outcome.kind == "exited" and outcome.exit_code == 0:
        return ""
    # What an exit code means to Drover is what a run's program says with it, not a hook.
    if outcome.kind == "exited" and (outcome.exit_code or 0) > 0:
        return f"exit code {outcome.exit_code}"
    return verdict(outcome).error


def _remark(sink: OutputSink, text: str) -> None:
    sink.feed(MARKER_STREAM, f"[{text}]\n".encode(), time.time())


def _shell(spec: RunSpec, command: str, more: Mapping[str, str] | None = None) -> RunSpec:
    env = {**spec.env, **(more or {})}
    return replace(spec, argv=("sh", "-c", command), env=env, adoptable=False, hears=False)


def _shown(command: str) -> str:
    return " ".join(command.split())[:MOST_SHOWN]
