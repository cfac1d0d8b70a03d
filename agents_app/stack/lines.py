"""Splits the output of a child process into printable lines; pure."""

import re
from dataclasses import dataclass, field

MAX_LINE_BYTES = 8192
# Whole escape sequences first, so that "\x1b[31m" does not leave "[31m" behind.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class PrintableLines:
    """Returns whole lines; a line above the limit is cut, with the number of missing bytes."""

    limit: int = MAX_LINE_BYTES
    _head: bytearray = field(default_factory=bytearray)
    _dropped: int = 0

    def feed(self, chunk: bytes) -> list[str]:
        *ended, rest = chunk.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def finish(self) -> list[str]:
        """The last line, if the output ends without a newline."""
        return [self._take()] if self._head else []

    def _add(self, part: bytes) -> None:
        free = self.limit - len(self._head)
        self._head += part[:free]
        self._dropped += max(0, len(part) - free)

    def _take(self) -> str:
        text, dropped = printable(bytes(self._head)), self._dropped
        self._head.clear()
        self._dropped = 0
        return f"{text} ... ({dropped} bytes more)" if dropped else text


def printable(raw: bytes) -> str:
    """Text that cannot move the cursor, change colours or break the encoding of a terminal."""
    text = raw.decode("utf-8", "backslashreplace").rstrip("\r")
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", text))
