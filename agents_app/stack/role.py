"""The description of one process for the supervisor."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents_app.stack.ready import ReadyCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: Path | None = None
    # -1: that of the supervisor. A worker passes it on to runs.
    umask: int = -1
    # Without `ready` and `ready_file` a process is ready when it has started.
    ready: ReadyCheck | None = None
    # Created by the process itself; removed before every start.
    ready_file: Path | None = None
    # Output before the process is ready is shown only if it never becomes ready.
    quiet_start: bool = False
    # Roles of one stage start or stop together, lower stages first.
    start_stage: int = 0
    stop_stage: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    # None: the process drains, that is, it exits when its runs have ended.
    stop_timeout_seconds: float | None = 10.0
    # Sent after the stop timeout.
    kill_signal: signal.Signals = signal.SIGKILL
    # Sent by the kernel when the supervisor exits.
    death_signal: signal.Signals = signal.SIGKILL
    restart: bool = True
