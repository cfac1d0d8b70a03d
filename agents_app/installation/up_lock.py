"""The lock that allows one `up` per data directory; its file has the process id and the address."""

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from agents_app.conf import PROGRAM
from agents_app.errors import ConfigError, Refused
from agents_app.installation.private_files import open_private_file

# The processes of a killed `up` end too, and the gateway and Redis need seconds to close.
_CLOSING_SECONDS = 10.0
# On this signal `up` drains; a repeated signal changes nothing, unlike a second SIGTERM.
DRAIN_SIGNAL = signal.SIGUSR1


def lock_path(data: Path) -> Path:
    return data / "up.lock"


@contextlib.contextmanager
def hold_lock(data: Path) -> Iterator[int]:
    """The descriptor of the held lock.

    Pass it to the children: the lock is then held until the last child exits, and the next `up`
    cannot start a second Redis on the files of a Redis that is still closing.
    """
    descriptor = _open(lock_path(data))
    try:
        _take(descriptor, data)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def running_up(data: Path) -> int | None:
    """The process id of the `up` of this data directory, or None.

    None also for the `up` of another user, whose lock this process may not read.
    """
    try:
        descriptor = os.open(lock_path(data), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return None
    try:
        # The process id in the file is valid only while the lock is held.
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _living_holder(descriptor)
    finally:
        os.close(descriptor)


def record_holder(descriptor: int, process: int, address: str) -> None:
    """Write the process that holds the lock and its address, for other commands."""
    text = f"{process}\n{address}\n".encode()
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


def running_address(data: Path) -> str:
    """The address of the running `up` of this data directory; empty if none runs."""
    if running_up(data) is None:
        return ""
    lines = lock_path(data).read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[1] if len(lines) > 1 else ""


def drain_up(data: Path) -> bool:
    """Ask the `up` of this data directory to drain; False: there is none that may be asked."""
    process = running_up(data)
    if process is None:
        return False
    try:
        os.kill(process, DRAIN_SIGNAL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def stop_up(data: Path, process: int, *, now: bool, seconds: float) -> bool:
    """Ask the `up` to stop and wait until its last process has exited; False: not in time.

    `now` stops running agents as well, as a second Ctrl-C does.
    """
    for signum in (DRAIN_SIGNAL, signal.SIGTERM) if now else (DRAIN_SIGNAL,):
        try:
            os.kill(process, signum)
        except ProcessLookupError:
            break
        except PermissionError:
            raise Refused(
                f"process {process} belongs to another user: stop it as that user"
            ) from None
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        if _is_free(data):
            return True
        time.sleep(0.05)
    return False


def _is_free(data: Path) -> bool:
    """Whether no process holds the lock."""
    descriptor = os.open(lock_path(data), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return open_private_file(path)
    except OSError as error:
        raise ConfigError(
            f"cannot write to the data directory {path.parent}: {error.strerror}. "
            "Set DROVER_DATA to a directory that this user may write to."
        ) from None


def _take(descriptor: int, data: Path) -> None:
    give_up_at = time.monotonic() + _CLOSING_SECONDS
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        holder = _living_holder(descriptor)
        if holder is not None:
            address = running_address(data)
            raise Refused(
                f"`{PROGRAM} up` already runs for {data} as process {holder}"
                f"{f' at {address}' if address else ''}. Stop it with `{PROGRAM} down`, "
                f"follow it with `{PROGRAM} up --attach`, or set DROVER_DATA to another "
                "directory."
            )
        if time.monotonic() > give_up_at:
            raise Refused(
                f"processes of an earlier `{PROGRAM} up` for {data} have not ended yet. "
                "Wait for them, or end them."
            )
        time.sleep(0.05)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _living_holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").partition("\n")[0].strip()
    if not text.isdigit():
        return None
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # another user's process is alive too
    return int(text)
