"""Messages to a running program on its standard input: line by line, as fast as it reads them."""

import contextlib
import fcntl
import os
import struct
import termios
import threading
from collections import deque
from collections.abc import Callable, Collection


class StdinMessages:
    """The queue of lines for one program. Other threads add lines; its runner writes them."""

    __slots__ = (
        "_lines", "_lock", "_pipe", "_unread_bytes", "_wake", "_written", "_written_bytes",
        "_written_of_first", "is_open",
    )  # fmt: skip

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._lines: deque[tuple[int, bytes]] = deque()
        # The message id of each line that was written, and where the line ends in all the bytes.
        self._written: list[tuple[int, int]] = []
        self._written_of_first = 0
        self._written_bytes = 0
        self._pipe: int | None = None
        self._unread_bytes = 0
        # From the start of the program until it closes its standard input or ends.
        self.is_open = False

    def add(self, message_id: int, line: bytes) -> bool:
        """Queue a line and wake the runner; False if the program reads no messages (any more)."""
        with self._lock:
            if not self.is_open:
                return False
            self._lines.append((message_id, line))
        self._wake()
        return True

    def begin(self, pipe: int | None = None) -> None:
        """For runners: accept messages. What is in `pipe` is delivered when it was read."""
        with self._lock:
            self.is_open, self._pipe = True, pipe

    def end(self) -> None:
        """For runners, before they close the descriptor: accept and deliver no more."""
        with self._lock:
            self._read_bytes()
            self.is_open, self._pipe = False, None

    @property
    def undelivered(self) -> list[int]:
        """The ids of messages that the program has not read to the end."""
        with self._lock:
            read = self._read_bytes()
            in_pipe = [message_id for message_id, end in self._written if end > read]
            return in_pipe + [message_id for message_id, _ in self._lines]

    @property
    def delivered(self) -> list[int]:
        """The ids of messages that were read to the end and not forgotten yet."""
        with self._lock:
            read = self._read_bytes()
            return [message_id for message_id, end in self._written if end <= read]

    @property
    def is_settled(self) -> bool:
        """No message is queued, in the pipe, or delivered without being recorded."""
        with self._lock:
            return not self._lines and not self._written

    def forget(self, message_ids: Collection[int]) -> None:
        """The delivery of these messages is recorded in the database."""
        with self._lock:
            self._written = [each for each in self._written if each[0] not in message_ids]

    def write(self, fd: int) -> bool:
        """For runners: write to a descriptor that does not block; True if it is full."""
        while rest := self._rest_of_first():
            try:
                self._count_written(os.write(fd, rest))
            except BlockingIOError:
                return True
            except OSError:
                self.end()  # the program has ended or closed its standard input
                return False
        return False

    def _read_bytes(self) -> int:
        """How many of the written bytes the program has read: the kernel counts the rest."""
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                found = fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4))
                self._unread_bytes = struct.unpack("i", found)[0]
        return self._written_bytes - self._unread_bytes

    def _rest_of_first(self) -> bytes:
        with self._lock:
            return self._lines[0][1][self._written_of_first :] if self._lines else b""

    def _count_written(self, count: int) -> None:
        with self._lock:
            self._written_bytes += count
            self._written_of_first += count
            if self._written_of_first == len(self._lines[0][1]):
                self._written.append((self._lines.popleft()[0], self._written_bytes))
                self._written_of_first = 0
