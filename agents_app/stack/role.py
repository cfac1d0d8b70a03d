"""What the supervisor must know about one process; a value, it does nothing."""

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
    # Without either it counts as ready once it has started.
    ready: ReadyCheck | None = None
    # Left by the process itself; one of an earlier life does not count.
    ready_file: Path | None = None
    # What it prints before it is ready is shown only if it never gets there.
    quiet_start: bool = False
    # Roles of one stage start or stop together, lower stages first.
    start_stage: int = 0
    stop_stage: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    # None: it drains, that is, it ends when its runs end.
    stop_timeout_seconds: float | None = 10.0
    # When asking was not enough.
    kill_signal: signal.Signals = signal.SIGKILL
    # What the kernel sends when the supervisor itself is gone.
    death_signal: signal.Signals = signal.SIGKILL
    restart: bool = True
