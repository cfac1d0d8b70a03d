"""Runs the shell command of a rule in the project directory and keeps its last lines."""

import os
import sys
import time
from collections import deque
from pathlib import Path

import structlog

from agents_app.redaction import RedactingRunner
from agents_app.rules.engine.decide import COMMAND_GRACE_SECONDS, COMMAND_SECONDS, RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language import ShellCommand
from agents_app.runners import GUARD, ProcessRunner, RunControl, RunSpec, base_environment, verdict
from agents_app.runners import Outcome as Ended
from agents_app.secrets import redactor_of_tenant
from agents_app.text import as_text

log = structlog.get_logger("drover.rules")
TAIL_LINES = 20
MAX_LINE_LENGTH = 1000
# More than are stored, because blank lines at the end are removed.
BUFFERED_LINES = 5 * TAIL_LINES
# A character has at most four bytes.
MAX_LINE_BYTES = 4 * MAX_LINE_LENGTH


class OutputTail:
    """The last lines of both output streams, in the order of their arrival.

    Lines are cut on arrival, so memory is bounded for many lines and for long ones.
    """

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque([b""], maxlen=BUFFERED_LINES)
        self._after_return = False

    def feed(self, _stream: int, data: bytes, _at: float) -> None:
        if self._after_return:
            # A CRLF that was split between two pieces.
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # Split from the end and no more than is kept: the rest of a large piece costs nothing.
        first, *lines = plain.rsplit(b"\n", BUFFERED_LINES)
        self._lines[-1] += first[: MAX_LINE_BYTES - len(self._lines[-1])]
        self._lines.extend(line[:MAX_LINE_BYTES] for line in lines)

    def flush(self) -> None: ...

    @property
    def text(self) -> str:
        lines = as_text(b"\n".join(self._lines)).rstrip("\n").split("\n")[-TAIL_LINES:]
        return "\n".join(line[:MAX_LINE_LENGTH] for line in lines)


def run_command(
    action: RuleAction,
    tenant_id: int,
    project: Path,
    control: RunControl,
    seconds: float = COMMAND_SECONDS,
    grace_seconds: float = COMMAND_GRACE_SECONDS,
) -> ActionOutcome:
    """Run the command and wait; its processes end with it, also when this process dies."""
    command = action.rule.action
    assert isinstance(command, ShellCommand)
    spec = RunSpec(
        # Negative, because positive numbers are ids of runs.
        run_id=-action.rule_id,
        argv=_guarded(command.command),
        env=base_environment(os.environ) | {"DROVER_RULE": action.rule.name},
        cwd=project,
        prompt_file=Path(os.devnull),
        timeout_seconds=seconds,
        grace_seconds=grace_seconds,
        adoptable=False,
    )
    tail, started = OutputTail(), time.monotonic()
    runner = RedactingRunner(ProcessRunner(), redactor_of_tenant(tenant_id))
    ended = runner.run(spec, control, tail)
    log.info(
        "rule.command_ended",
        rule=action.rule.name,
        exit_code=ended.exit_code,
        seconds=round(time.monotonic() - started, 1),
        tail=tail.text,
    )
    return _outcome(ended, tail.text)


def _guarded(command: str) -> tuple[str, ...]:
    """The command as a child of a guard that ends it when this process is gone."""
    guard = (sys.executable, "-IS", GUARD, "--parent", str(os.getpid()))
    return (*guard, "--", "sh", "-c", command)


def _outcome(ended: Ended, tail: str) -> ActionOutcome:
    if ended.kind == "stopped":
        return ActionOutcome(stopped=ended.error, exit_code=ended.exit_code, tail=tail)
    if ended.kind == "exited" and ended.exit_code == 0:
        return ActionOutcome("exit code 0", exit_code=0, tail=tail)
    # The special exit codes of runs have no meaning for a command of a rule.
    failed = ended.kind == "exited" and (ended.exit_code or 0) > 0
    problem = f"exit code {ended.exit_code}" if failed else verdict(ended).error
    return ActionOutcome(problem=problem, exit_code=ended.exit_code, tail=tail)
