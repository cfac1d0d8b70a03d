"""Text for display: shortening, removal of terminal controls, relative times; pure."""

import codecs
import re
from datetime import datetime

LONGEST_BYTES = 4096
CUT = "\n…[truncated]"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

# Strings (OSC, DCS, SOS, PM, APC) end with their terminator, but never go past a line's end.
# Each loop stops at the next opening, or a hostile output makes the search quadratic.
_ESC_STRING, _C1_STRING = r"[\]PX^_]", r"[\x90\x98\x9d-\x9f]"
_STRING_BODY = r"[^\x07\x1b\x90\x98\x9c-\x9f\r\n]*"
_UTF8_STRING_BODY = r"[^\x07\x1b\xc2\r\n]*(?:\xc2(?![\x90\x98\x9c-\x9f])[^\x07\x1b\xc2\r\n]*)*"
CSI = r"(?:\x1b\[|\x9b)"


def _sequences(string_body: str, c1: str) -> tuple[str, str]:
    """The patterns of sequences that begin with ESC and with a C1 control; `c1` is the first byte
    of a C1 control in UTF-8, and empty for text."""
    string = rf"{string_body}(?:\x07|\x1b\\|{c1}\x9c)?"
    csi = r"[0-?]*[ -/]*[@-~]?"
    return (
        rf"\x1b(?:{_ESC_STRING}{string}|\[{csi}|[ -/]*[0-~]?)",
        rf"{c1}(?:{_C1_STRING}{string}|\x9b{csi}|[\x80-\x9f])",
    )


# Everything that controls a terminal, except tabs and line ends.
CONTROLS = "|".join((*_sequences(_STRING_BODY, ""), r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"))
_REMOVED = re.compile(CONTROLS)
# What CONTROLS removes from text, in the bytes of UTF-8; without the controls of ASCII.
UTF8_ESC_SEQUENCE, UTF8_C1_SEQUENCE = (
    pattern.encode() for pattern in _sequences(_UTF8_STRING_BODY, r"\xc2")
)
# The groups are the part that is needed to recognise the rest of the sequence.
_UNFINISHED = re.compile(
    rf"(\x1b{_ESC_STRING}|{_C1_STRING}){_STRING_BODY}(\x1b?)\Z"
    rf"|({CSI})[0-?]*([ -/]?)[ -/]*\Z"
    r"|(\x1b[ -/]?)[ -/]*\Z"
)
_LINE_END = re.compile(r"\r+\n?")


def summary(text: str, longest_bytes: int = LONGEST_BYTES) -> str:
    """The text cut at a character boundary, with a mark; text that was cut before is unchanged."""
    data = text.removesuffix(CUT).encode(errors="replace")
    if len(data) <= longest_bytes:
        return text
    return data[:longest_bytes].decode(errors="ignore") + CUT


def rough(seconds: float) -> str:
    """The duration in the largest unit with a value of at least 2."""
    size, name = next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])
    return f"{int(seconds // size)} {name}"


def relative(moment: datetime, now: datetime) -> str:
    """`in 5 min`, `2 h ago`."""
    far = (moment - now).total_seconds()
    if abs(far) < 1:
        return "now"
    return f"in {rough(far)}" if far > 0 else f"{rough(-far)} ago"


class TextDecoder:
    """Decodes the bytes of one stream; sequences may be split between calls."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = ""
        self._return = ""

    def decode(self, data: bytes, final: bool = False) -> str:
        text = self._escape + self._utf8.decode(data, final)
        self._escape = ""
        if not final and (unfinished := _UNFINISHED.search(text)):
            # Only its start: the rest is removed anyway, and may be very long.
            self._escape = "".join(group for group in unfinished.groups() if group)
            text = text[: unfinished.start()]
        return self._lines(_REMOVED.sub("", text), final)

    def _lines(self, text: str, final: bool) -> str:
        text = self._return + text
        self._return = ""
        if not final and text.endswith("\r"):
            self._return, text = "\r", text.rstrip("\r")
        return _LINE_END.sub("\n", text)


def as_text(data: bytes) -> str:
    """Valid UTF-8 without escape sequences and controls other than tabs and line ends."""
    return TextDecoder().decode(data, final=True)


def harmless(text: str) -> str:
    """Removes terminal controls: messages quote texts of agents and senders."""
    return as_text(text.encode("utf-8", "replace"))
