"""Starts the supervisor in the background and waits until it is ready."""

import contextlib
import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agents_app.conf import ROOT
from agents_app.errors import ConfigError
from agents_app.installation import create_private_directory, open_private_file, record_holder
from agents_app.stack.notify import NOTIFY_SOCKET
from agents_app.stack.role_process import READY_WITHIN_SECONDS

_POLL_SECONDS = 0.1
_LAST_LINES = 8


def start_in_background(
    argv: Sequence[str], env: Mapping[str, str], lock_fd: int, address: str, log: Path
) -> int:
    """Start the supervisor in a session of its own; returns its process id when it is ready.

    The lock passes to the new process. Raises ConfigError with the last lines of its output.
    """
    create_private_directory(log.parent)
    with _notify_socket() as (receiver, path), os.fdopen(open_private_file(log), "rb+") as output:
        begin = output.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            argv,
            env={**env, NOTIFY_SOCKET: path},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(lock_fd,),
        )
        record_holder(lock_fd, process.pid, address)
        try:
            _wait_until_ready(process, receiver)
        except _NotReady as error:
            output.seek(begin)
            lines = output.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:]
            shown = "".join(f"\n    {line}" for line in lines)
            raise ConfigError(f"Drover did not start: {error}. See {log}:{shown}") from None
        except KeyboardInterrupt:
            process.terminate()
            raise
    return process.pid


class _NotReady(Exception):
    pass


@contextlib.contextmanager
def _notify_socket() -> Iterator[tuple[socket.socket, str]]:
    # Not in the data directory: the path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="drover-") as directory:
        path = f"{directory}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(path)
            yield receiver, path


def _wait_until_ready(process: subprocess.Popen[bytes], receiver: socket.socket) -> None:
    # Each of the two stages may take this long; the supervisor ends by itself afterwards.
    polls = int(2 * READY_WITHIN_SECONDS / _POLL_SECONDS)
    for _ in range(polls):
        if select.select([receiver], [], [], _POLL_SECONDS)[0]:
            if b"READY=1" in receiver.recv(4096).split(b"\n"):
                return
        elif process.poll() is not None:
            raise _NotReady(f"it exited with status {process.returncode}")
    process.terminate()
    raise _NotReady(f"it was not ready within {2 * READY_WITHIN_SECONDS:g} s")
