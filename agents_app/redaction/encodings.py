"""The forms a secret may take in an output, and ways to look at bytes that see through them."""

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
# A shorter one may be the end of a line whose beginning has been shown already.
_WRAPPED = re.compile(rb"(?:\A|[A-Za-z0-9+/_-]{%d})[A-Za-z0-9+/_-]*\r?\n\Z" % SHORTEST_WRAPPED_LINE)


@dataclass(frozen=True, slots=True)
class Places:
    """Where each byte that is seen begins and ends in what is looked at."""

    starts: Sequence[int]
    ends: Sequence[int]


def _always(_: bytes) -> bool:
    return True


def _as_it_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True)
class View:
    """`see` is fast, because it is done to all output; `places` only where something was seen."""

    forms: Callable[[bytes], Iterable[bytes]]
    see: Callable[[bytes], bytes]
    places: Callable[[bytes], Places]
    is_worth_it: Callable[[bytes], bool] = _always
    # Of an output that has got this far: what a form may begin in, to go on in what is to come.
    may_go_on: Callable[[bytes], bytes | None] = _as_it_is
    # How many bytes may stand for one that is seen.
    width: int = 1


# --- as it is, or in other letters ----------------------------------------------------------


def _plain_forms(secret: bytes) -> set[bytes]:
    text = secret.decode(errors="replace")
    escaped = json.dumps(text)[1:-1]
    texts = {
        escaped,
        escaped.replace("/", "\\/"),
        # A log line that is JSON, about an output that was JSON.
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
    """Whatever stands before and after it: only the letters that depend on nothing else."""
    forms = set()
    for before in range(3):
        letters = base64.b64encode(bytes(before) + secret)
        forms.add(letters[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6])
    return forms


def _joined(data: bytes) -> bytes:
    """Without line ends, and with one alphabet for both kinds."""
    return data.translate(_ONE_ALPHABET, _LINE_ENDS)


def _joined_places(data: bytes) -> Places:
    starts = [at for line in _KEPT.finditer(data) for at in range(*line.span())]
    return Places(starts, [at + 1 for at in starts])


def _unless_a_text_line(data: bytes) -> bytes | None:
    """Or every line that happens to end with the right letter would be kept back."""
    ends = data.endswith(b"\n") and not _WRAPPED.search(data[-SHORTEST_WRAPPED_LINE - 2 :])
    return None if ends else data


# --- percent signs --------------------------------------------------------------------------


def _percent_forms(secret: bytes) -> set[bytes]:
    return {secret, secret.replace(b" ", b"+")}


def _unquoted(data: bytes) -> bytes:
    # Not urllib's, which takes a step for each escape: an output may consist of them.
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
    """What is to come may make any letter of it."""
    if b"%" not in data:
        return None
    begun = _BEGUN_ESCAPE.search(data)
    return data[: begun.start()] if begun else data


PLAIN = View(_plain_forms, _as_it_is, _all_places)
BASE64 = View(_base64_forms, _joined, _joined_places, may_go_on=_unless_a_text_line, width=2)
PERCENT = View(
    *(_percent_forms, _unquoted, _unquoted_places),
    is_worth_it=_has_escapes,
    may_go_on=_before_begun_escape,
    width=3,
)
VIEWS = (PLAIN, BASE64, PERCENT)
