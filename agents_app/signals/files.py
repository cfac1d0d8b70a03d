"""Signals that a run left in files, because it had no gateway: read once, when it has ended.

What is in the directory was put there by the run, which may be anybody's: a link, a pipe or a file
without an end must neither be followed nor waited for.
"""

import contextlib
import os
import stat
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from agents_app.models import Run
from agents_app.text import summary

log = structlog.get_logger("drover.signals")
NAMES = ("rerun", "status", "return", "exit")
UNRECOVERABLE = 15
LONGEST_BYTES = 1_000_000
LONGEST_STATUS = 500
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def take_signal_files(directory: str) -> dict[str, str] | None:
    """The text of each file that is a signal's; None is the usual: there are none."""
    try:
        # Every run pays for this, and an empty one has to be removed anyway.
        os.rmdir(directory)  # noqa: PTH106
    except OSError:
        return _read_all(directory)
    return None


def _read_all(directory: str) -> dict[str, str] | None:
    try:
        opened = os.open(directory, _DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("signals.not_read", directory=directory, error=str(error))
        return None
    try:
        names = os.listdir(opened)  # noqa: PTH208 - of the descriptor, which no link can replace
        return {name: _read(opened, name) for name in NAMES if name in names} or None
    finally:
        os.close(opened)


def keep_signals(run_id: int, said: Mapping[str, str], now: datetime, worker_id: int) -> None:
    """In the transaction that ends the run, before that: a run that is no longer ours is left."""
    owned = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, worker_id=worker_id)
    owned.update(signaled_at=now, **_columns(said))


def _read(directory: int, name: str) -> str:
    with contextlib.suppress(OSError):
        file = os.open(name, _FILE, dir_fd=directory)
        try:
            status = os.fstat(file)
            # A second name of the file may be one that only the worker may read.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return _text(os.read(file, LONGEST_BYTES))
        finally:
            os.close(file)
    return ""


def _text(data: bytes) -> str:
    # PostgreSQL has no place for a NUL in a text.
    return data.replace(b"\0", b"").decode(errors="replace")


def _columns(said: Mapping[str, str]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "rerun" in said:
        columns["rerun_requested"] = True
    if "exit" in said:
        columns["exit_signal"] = _code(said["exit"])
    if "status" in said:
        columns["status_text"] = said["status"].strip()[:LONGEST_STATUS]
    if "return" in said:
        columns["return_value"] = said["return"]
        columns["result_summary"] = summary(said["return"])
    return columns


def _code(text: str) -> int:
    digits = text.strip()
    known = digits.isascii() and digits.isdigit() and len(digits) <= 3 and int(digits) <= 255
    return int(digits) if known else UNRECOVERABLE
