"""What a program is told on its standard input while it runs: line by line, as fast as it reads."""

import contextlib
import fcntl
import os
import struct
import termios
import threading
from collections import deque
from collections.abc import Callable, Collection


class StdinMessages:
    """Lines that wait to be said to one program; whoever adds one wakes its runner."""

    __slots__ = (
        "_lines", "_lock", "_pipe", "_said", "_said_bytes", "_unread", "_wake", "_written", "heard"
    )  # fmt: skip

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._lines: deque[tuple[int, bytes]] = deque()
        # Each with where it ends in all that was written.
        self._said: list[tuple[int, int]] = []
        self._said_bytes = 0
        self._written = 0
        self._pipe: int | None = None
        self._unread = 0
        # Whether anybody listens: from the program's start until it closes its input or ends.
        self.heard = False

    def add(self, number: int, line: bytes) -> bool:
        """False: nobody listens, and nobody will."""
        with self._lock:
            if not self.heard:
                return False
            self._lines.append((number, line))
        self._wake()
        return True

    def begin(self, pipe: int | None = None) -> None:
        """For runners: somebody listens; what is in a pipe is not said until it was read."""
        with self._lock:
            self.heard, self._pipe = True, pipe

    def end(self) -> None:
        """For runners, before they close the descriptor: what is unsaid by now stays so."""
        with self._lock:
            self._look()
            self.heard, self._pipe = False, None

    @property
    def unsaid(self) -> list[int]:
        """The numbers of those that were not said to their end."""
        with self._lock:
            read = self._look()
            in_the_pipe = [number for number, end in self._said if end > read]
            return in_the_pipe + [number for number, _ in self._lines]

    @property
    def said(self) -> list[int]:
        """The numbers of those that were, as long as nobody has noted it."""
        with self._lock:
            read = self._look()
            return [number for number, end in self._said if end <= read]

    @property
    def is_settled(self) -> bool:
        """Nothing is unsaid, and nothing that was said waits to be noted."""
        with self._lock:
            return not self._lines and not self._said

    def noted(self, numbers: Collection[int]) -> None:
        """It is on disk that these were said."""
        with self._lock:
            self._said = [one for one in self._said if one[0] not in numbers]

    def say(self, fd: int) -> bool:
        """For runners: True if more waits for room. The descriptor must not block."""
        while rest := self._rest():
            try:
                self._note(os.write(fd, rest))
            except BlockingIOError:
                return True
            except OSError:
                self.end()  # it has ended, or wants to hear nothing more
                return False
        return False

    def _look(self) -> int:
        """How much was read of all that was written. The kernel knows what nobody has fetched."""
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                found = fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4))
                self._unread = struct.unpack("i", found)[0]
        return self._written - self._unread

    def _rest(self) -> bytes:
        with self._lock:
            return self._lines[0][1][self._said_bytes :] if self._lines else b""

    def _note(self, count: int) -> None:
        with self._lock:
            self._written += count
            self._said_bytes += count
            if self._said_bytes == len(self._lines[0][1]):
                self._said.append((self._lines.popleft()[0], self._written))
                self._said_bytes = 0
