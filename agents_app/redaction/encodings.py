"""The encodings in which a secret may occur in output, and how to search bytes for each."""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# A line of base64 that goes on in the next one is no shorter than this.
SHORTEST_WRAPPED_LINE = 16
_LINE_ENDS = b"\r\n"
_ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
_KEPT = re.compile(rb"[^\r\n]+")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_BEGUN_ESCAPE = re.compile(rb"%[0-9A-Fa-f]?\Z")
# A shorter one may be the end of a line whose beginning has been passed on already.
_WRAPPED = re.compile(rb"(?:\A|[A-Za-z0-9+/_-]{%d})[A-Za-z0-9+/_-]*\r?\n\Z" % SHORTEST_WRAPPED_LINE)


@dataclass(frozen=True, slots=True)
class Places:
    """Where each decoded byte begins and ends in the raw bytes."""

    starts: Sequence[int]
    ends: Sequence[int]


def _always(_: bytes) -> bool:
    return True


def _as_it_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True)
class View:
    """One encoding: `see` decodes all output and must be fast; `places` is called for hits only."""

    forms: Callable[[bytes], Iterable[bytes]]
    see: Callable[[bytes], bytes]
    places: Callable[[bytes], Places]
    may_contain: Callable[[bytes], bool] = _always
    # The part of the end of an output in which a form may begin that continues in later output.
    searched_end: Callable[[bytes], bytes | None] = _as_it_is
    # How many raw bytes one decoded byte may take.
    width: int = 1


# --- plain and escaped texts ------------------------------------------------------------


def _plain_forms(secret: bytes) -> set[bytes]:
    text = secret.decode(errors="replace")
    escaped = json.dumps(text)[1:-1]
    texts = {
        escaped,
        escaped.replace("/", "\\/"),
        # A JSON log line that quotes JSON output.
        json.dumps(escaped)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
        secret.hex(),
        secret.hex().upper(),
    }
    return {secret, *(form.encode() for form in texts)}


def _all_places(data: bytes) -> Places:
    return Places(range(len(data)), range(1, len(data) + 1))


# --- base64 ---------------------------------------------------------------------------------


def _base64_forms(secret: bytes) -> set[bytes]:
    """Only the letters that do not depend on the bytes before and after the secret."""
    forms = set()
    for before in range(3):
        letters = base64.b64encode(bytes(before) + secret)
        forms.add(letters[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6])
    return forms


def _joined(data: bytes) -> bytes:
    """Without line ends, and both alphabets of base64 as one."""
    return data.translate(_ONE_ALPHABET, _LINE_ENDS)


def _joined_places(data: bytes) -> Places:
    starts = [at for line in _KEPT.finditer(data) for at in range(*line.span())]
    return Places(starts, [at + 1 for at in starts])


def _unless_a_text_line(data: bytes) -> bytes | None:
    """None for lines of text: otherwise all that end with a certain letter would be held back."""
    ends = data.endswith(b"\n") and not _WRAPPED.search(data[-SHORTEST_WRAPPED_LINE - 2 :])
    return None if ends else data


# --- percent signs --------------------------------------------------------------------------


def _percent_forms(secret: bytes) -> set[bytes]:
    return {secret, secret.replace(b" ", b"+")}


def _unquoted(data: bytes) -> bytes:
    # urllib takes a step for each escape, and an output may consist of escapes.
    return _ESCAPES.sub(_letters, data)


def _letters(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode())


def _unquoted_places(data: bytes) -> Places:
    starts: list[int] = []
    last = 0
    for escape in _ESCAPE.finditer(data):
        starts += range(last, escape.start() + 1)
        last = escape.end()
    starts += range(last, len(data))
    return Places(starts, [*starts[1:], len(data)])


def _has_escapes(data: bytes) -> bool:
    return b"%" in data and _ESCAPE.search(data) is not None


def _before_begun_escape(data: bytes) -> bytes | None:
    """Later output may complete an unfinished escape to any letter."""
    if b"%" not in data:
        return None
    begun = _BEGUN_ESCAPE.search(data)
    return data[: begun.start()] if begun else data


PLAIN = View(_plain_forms, _as_it_is, _all_places)
BASE64 = View(_base64_forms, _joined, _joined_places, searched_end=_unless_a_text_line, width=2)
PERCENT = View(
    *(_percent_forms, _unquoted, _unquoted_places),
    may_contain=_has_escapes,
    searched_end=_before_begun_escape,
    width=3,
)
VIEWS = (PLAIN, BASE64, PERCENT)
