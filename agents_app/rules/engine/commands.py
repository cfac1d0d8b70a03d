"""A rule's shell command: in the project directory, for five minutes, its last lines kept."""

import os
import sys
import time
from collections import deque
from pathlib import Path

import structlog

from agents_app.redaction import RedactingRunner
from agents_app.rules.engine.decide import COMMAND_GRACE_SECONDS, COMMAND_SECONDS, RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language import Shell
from agents_app.runners import GUARD, ProcessRunner, RunControl, RunSpec, base_environment, verdict
from agents_app.runners import Outcome as Ended
from agents_app.secrets import redactor_of_tenant
from agents_app.text import as_text

log = structlog.get_logger("drover.rules")
LINES_KEPT = 20
LONGEST_LINE = 1000
# More than are shown, because blank ones at the end are not; a character has at most four bytes.
LINES_HELD = 5 * LINES_KEPT
BYTES_OF_A_LINE = 4 * LONGEST_LINE


class OutputTail:
    """The end of what both streams say, in the order in which it came.

    Lines are cut as they come: neither many of them nor long ones cost memory.
    """

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque([b""], maxlen=LINES_HELD)
        self._after_return = False

    def feed(self, _stream: int, data: bytes, _at: float) -> None:
        if self._after_return:
            # One end of a line that came in two pieces.
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # From the end, and no more of it than is held: of a flood the rest is not looked at.
        first, *lines = plain.rsplit(b"\n", LINES_HELD)
        self._lines[-1] += first[: BYTES_OF_A_LINE - len(self._lines[-1])]
        self._lines.extend(line[:BYTES_OF_A_LINE] for line in lines)

    def flush(self) -> None: ...

    @property
    def text(self) -> str:
        lines = as_text(b"\n".join(self._lines)).rstrip("\n").split("\n")[-LINES_KEPT:]
        return "\n".join(line[:LONGEST_LINE] for line in lines)


def run_command(
    errand: RuleAction,
    tenant_id: int,
    project: Path,
    control: RunControl,
    seconds: float = COMMAND_SECONDS,
    grace_seconds: float = COMMAND_GRACE_SECONDS,
) -> ActionOutcome:
    """Nothing it started is left when this returns, nor when this process dies meanwhile."""
    action = errand.rule.action
    assert isinstance(action, Shell)
    spec = RunSpec(
        # Runs of agents have the numbers above zero.
        run_id=-errand.rule_id,
        argv=_guarded(action.command),
        env=base_environment(os.environ) | {"DROVER_RULE": errand.rule.name},
        cwd=project,
        prompt_file=Path(os.devnull),
        timeout_seconds=seconds,
        grace_seconds=grace_seconds,
        adoptable=False,
    )
    tail, began = OutputTail(), time.monotonic()
    runner = RedactingRunner(ProcessRunner(), redactor_of_tenant(tenant_id))
    ended = runner.run(spec, control, tail)
    took = time.monotonic() - began
    log.info(
        "rule.command_ended",
        rule=errand.rule.name,
        exit_code=ended.exit_code,
        seconds=round(took, 1),
        tail=tail.text,
    )
    return _outcome(ended, tail.text)


def _guarded(command: str) -> tuple[str, ...]:
    """Below a guard that ends it all when this process is gone, however it went."""
    guard = (sys.executable, "-IS", GUARD, "--parent", str(os.getpid()))
    return (*guard, "--", "sh", "-c", command)


def _outcome(ended: Ended, tail: str) -> ActionOutcome:
    if ended.kind == "stopped":
        return ActionOutcome(stopped=ended.error, exit_code=ended.exit_code, tail=tail)
    if ended.kind == "exited" and ended.exit_code == 0:
        return ActionOutcome("exit code 0", exit_code=0, tail=tail)
    # What an exit code means to Drover is what a run says with it, not a command.
    failed = ended.kind == "exited" and (ended.exit_code or 0) > 0
    problem = f"exit code {ended.exit_code}" if failed else verdict(ended).error
    return ActionOutcome(problem=problem, exit_code=ended.exit_code, tail=tail)
