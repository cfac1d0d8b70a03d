"""Signals that a run without a gateway left in files; read once, when the run has ended.

The run controls the content of the directory: links must not be followed, and pipes or endless
files must not block the reader.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from agents_app.models import Run
from agents_app.signals.declarations import SIGNALS

log = structlog.get_logger("drover.signals")
MAX_FILE_BYTES = 1_000_000
_FROM_FILE = {
    signal.name: signal.columns_from_file
    for signal in SIGNALS.values()
    if signal.columns_from_file is not None
}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def take_signal_files(directory: str) -> dict[str, str] | None:
    """The text of each signal file by the signal's name; None, the usual case, if there is none."""
    try:
        opened = os.open(directory, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("signals.not_read", directory=directory, error=str(error))
        return None
    try:
        names = os.listdir(opened)  # noqa: PTH208 - of the descriptor, which no link can replace
        return {name: _read(opened, name) for name in _FROM_FILE if name in names} or None
    finally:
        os.close(opened)


def _read(directory: int, name: str) -> str:
    with contextlib.suppress(OSError):
        file = os.open(name, _FILE, dir_fd=directory)
        try:
            status = os.fstat(file)
            # A hard link may be to a file that only the worker may read.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return _text(os.read(file, MAX_FILE_BYTES))
        finally:
            os.close(file)
    return ""


def _text(data: bytes) -> str:
    # PostgreSQL cannot store NUL in a text.
    return data.replace(b"\0", b"").decode(errors="replace")


def signal_columns(texts: Mapping[str, str]) -> dict[str, Any]:
    """The columns of the run that these signals set."""
    columns: dict[str, Any] = {}
    for name, text in texts.items():
        columns |= _FROM_FILE[name](text)
    return columns


def store_signals(run_id: int, texts: Mapping[str, str], now: datetime, worker_id: int) -> None:
    """Store signals read from files, in the transaction that ends the run and before its end.

    Changes nothing if the run no longer belongs to the worker."""
    columns = signal_columns(texts)
    owned = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, worker_id=worker_id)
    owned.update(signaled_at=now, **columns)
