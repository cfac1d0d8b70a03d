"""Prints the lines of several processes, each with the name of its process."""

import contextlib
import io
import os
import threading
from typing import TextIO

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95")
_OWN_COLOUR = "1"


class Console:
    """Colours on a terminal, plain text elsewhere; a closed output stream is ignored."""

    def __init__(self, stream: TextIO, names: tuple[str, ...] = (), own_name: str = "up") -> None:
        if isinstance(stream, io.TextIOWrapper):
            # A child may print characters that the encoding lacks: escape them.
            stream.reconfigure(errors="backslashreplace")
        self._stream = stream
        self._own_name = own_name
        self._width = max(map(len, (own_name, *names)))
        self._coloured = stream.isatty() and not os.environ.get("NO_COLOR")
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        prefix = f"{name:<{self._width}} |"
        if self._coloured:
            prefix = f"\x1b[{self._colours.get(name, _OWN_COLOUR)}m{prefix}\x1b[0m"
        self._write(f"{prefix} {text}\n")

    def say(self, text: str) -> None:
        """Print a message of the supervisor itself."""
        for line in text.splitlines():
            self.line(self._own_name, line)

    def _write(self, text: str) -> None:
        # The terminal or the pipe may be closed while the processes still drain.
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
