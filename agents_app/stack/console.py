"""Prints the lines of several processes: readable on a terminal, else with the name or as JSON."""

import contextlib
import io
import json
import os
import threading
from datetime import UTC, datetime
from typing import Literal, TextIO
from zlib import crc32

from agents_app.clock import iso
from agents_app.stack.readable import ReadableLog

_COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95")
_OWN_COLOUR = "1"
# labelled: the line of a process after its name. readable: for people. json: one object a line.
Style = Literal["labelled", "readable", "json"]


class Console:
    """Colours on a terminal, plain text elsewhere; a closed output stream is ignored."""

    def __init__(
        self,
        stream: TextIO,
        names: tuple[str, ...] = (),
        own_name: str = "up",
        style: Style = "labelled",
    ) -> None:
        if isinstance(stream, io.TextIOWrapper):
            # A child may print characters that the encoding lacks: escape them.
            stream.reconfigure(errors="backslashreplace")
        self._stream = stream
        self._own_name = own_name
        self._style = style
        self._readable = ReadableLog()
        self._width = max(map(len, (own_name, *names)))
        self._coloured = stream.isatty() and not os.environ.get("NO_COLOR")
        self._colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        if self._style == "json":
            self._write(_as_json(name, text))
        elif self._style == "readable":
            self._write_readable(name, text)
        else:
            prefix = self._in_colour(f"{name:<{self._width}} |", self._colours.get(name))
            self._write(f"{prefix} {text}\n")

    def say(self, text: str) -> None:
        """Print a message of the supervisor itself."""
        for line in text.splitlines():
            if self._style == "readable":
                self._write(f"{self._in_colour(line, None)}\n")
            else:
                self.line(self._own_name, line)

    def _write_readable(self, name: str, text: str) -> None:
        shown = self._readable.render(name, text)
        if shown is not None:
            # By name: an agent has the same colour after each start.
            colour = _COLOURS[crc32(shown.subject.encode()) % len(_COLOURS)]
            self._write(f"{shown.at} {self._in_colour(shown.subject, colour)} {shown.text}\n")

    def _in_colour(self, text: str, colour: str | None) -> str:
        return f"\x1b[{colour or _OWN_COLOUR}m{text}\x1b[0m" if self._coloured else text

    def _write(self, text: str) -> None:
        # The terminal or the pipe may be closed while the processes still drain.
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _as_json(name: str, text: str) -> str:
    """The object of the process with its role; other text becomes the detail of an object."""
    with contextlib.suppress(ValueError):
        if text.startswith("{") and isinstance(entry := json.loads(text), dict):
            return json.dumps({"role": name, **entry}) + "\n"
    now = iso(datetime.now(UTC))
    entry = {"role": name, "event": "process.printed", "detail": text, "timestamp": now}
    return json.dumps(entry) + "\n"
