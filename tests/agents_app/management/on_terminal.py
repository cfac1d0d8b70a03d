"""A real command on a real terminal: a pseudo-terminal of a given width, as a person has it."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from agents_app.conf import ROOT
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import BUSY_FACTOR, wait_for

# What moves the cursor, colours, and hides: everything that is not text.
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])")


class Terminal:
    """What the command has written so far, and its keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process, self.raw = process, ""
        self._master = master
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines()]

    def wait_for(self, text: str, seconds: float = 20) -> None:
        wait_for(lambda: text in self.text, seconds, lambda: f"no {text!r} in:\n{self.text}")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> int:
        """Ctrl-C, as the terminal sends it."""
        os.write(self._master, b"\x03")
        return self.wait()

    def wait(self, seconds: float = 20 * BUSY_FACTOR) -> int:
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self.raw += data.decode(errors="replace")
        except OSError:
            return  # the other end is closed


@contextmanager
def on_terminal(
    stack: PrivateStack, *arguments: str, columns: int = 120, **env: str
) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**stack.env, "TERM": "xterm-256color", **env},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: _own_terminal(slave),
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        os.close(master)


def _own_terminal(slave: int) -> None:
    """Without it Ctrl-C would be a character like any other."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
