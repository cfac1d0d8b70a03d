"""The encodings in which a secret may occur in output, and how to search bytes for each."""

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agents_app.text import UTF8_C1_SEQUENCE, UTF8_ESC_SEQUENCE

# A line of base64 that goes on in the next one is no shorter than this.
SHORTEST_WRAPPED_LINE = 16
# A shorter form may occur by chance: the rest of the secret consists of control characters.
SHORTEST_FORM = 8
# Deleted from output that is searched: line ends, and what the log viewer deletes.
_DELETED = bytes({*range(0x20), 0x7F} - {ord("\t")})
_KEPT = re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]+")
_ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_BEGUN_ESCAPE = re.compile(rb"%[0-9A-Fa-f]?\Z")
# A shorter one may be the end of a line whose beginning has been passed on already.
_WRAPPED = re.compile(rb"(?:\A|[A-Za-z0-9+/_-]{%d})[A-Za-z0-9+/_-]*\r?\n\Z" % SHORTEST_WRAPPED_LINE)
# In one step, as the log viewer removes them: one sequence may end another.
_SEQUENCE = re.compile(UTF8_ESC_SEQUENCE + b"|" + UTF8_C1_SEQUENCE)
# For output without C1 controls: one that begins with one byte is found twice as fast.
_ESC_SEQUENCE = re.compile(UTF8_ESC_SEQUENCE)
_C1_CONTROL = re.compile(rb"\xc2[\x80-\x9f]")
# The sequences of colours and of progress bars consist of ESC and few letters. The last one of an
# output may be unfinished.
_USUAL_LETTERS = b"[0123456789;?ABCDEFGHJKhlm"
_UNUSUAL_SEQUENCE = re.compile(rb"\x1b(?!\Z|\[[0-9;?]*(?:[A-HJKhlm]|\Z))")
# Characters of JSON and XML; JSON inside JSON has several backslashes before a character. Of JSON
# only those of ASCII: others are in much output, and `_plain_forms` has them.
_ESCAPED_CHARACTER = re.compile(
    rb"\\\\*(?:u00([0-7][0-9A-Fa-f])|([\x22\x27/]))"
    rb"|&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));"
)
_BEGUN_CHARACTER = re.compile(rb"(?:\\{1,8}(?:u[0-9A-Fa-f]{0,3})?|&[#0-9A-Za-z]{0,9})\Z")
_LONGEST_BEGUN_CHARACTER = 12
_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_ENTITY_BEGINNINGS = (b"&#", *(b"&" + name + b";" for name in _ENTITIES))
_LAST_CHARACTER = 0x10FFFF


class Places:
    """Where each decoded byte begins and ends in the raw bytes, in runs: output has few of them."""

    def __init__(self) -> None:
        # Of each run: the number of its first decoded byte, its first raw byte, and the end of the
        # raw bytes that all its decoded bytes stand for; 0 if each stands for one raw byte.
        self._numbers: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._count = 0

    def add_kept(self, start: int, end: int) -> None:
        if start < end:
            self._add(start, 0, end - start)

    def add_replaced(self, start: int, end: int, size: int) -> None:
        if size:
            self._add(start, end, size)

    def _add(self, start: int, end: int, size: int) -> None:
        self._numbers.append(self._count)
        self._starts.append(start)
        self._ends.append(end)
        self._count += size

    def start(self, number: int) -> int:
        run = bisect_right(self._numbers, number) - 1
        kept = 0 if self._ends[run] else number - self._numbers[run]
        return self._starts[run] + kept

    def end(self, number: int) -> int:
        run = bisect_right(self._numbers, number) - 1
        return self._ends[run] or self.start(number) + 1


@dataclass(frozen=True, slots=True)
class ChainedPlaces:
    """The places through several steps of decoding, the last step first."""

    steps: Sequence[Places]

    def start(self, number: int) -> int:
        for places in self.steps:
            number = places.start(number)
        return number

    def end(self, number: int) -> int:
        for places in self.steps:
            number = places.end(number) - 1
        return number + 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step of decoding: `see` decodes all output and must be fast; `places` is for hits."""

    see: Callable[[bytes], bytes]
    places: Callable[[bytes], Places]


def _always(_: bytes) -> bool:
    return True


def _as_it_is(data: bytes) -> bytes:
    return data


@dataclass(frozen=True, slots=True)
class View:
    """One encoding: the forms of a secret, and the steps that decode output before the search."""

    forms: Callable[[bytes], Iterable[bytes]]
    steps: tuple[Step, ...] = ()
    may_contain: Callable[[bytes], bool] = _always
    # The part of the end of an output in which a form may begin that continues in later output.
    searched_end: Callable[[bytes], bytes | None] = _as_it_is
    # How many raw bytes one decoded byte may take.
    width: int = 1

    def see(self, data: bytes) -> bytes:
        for step in self.steps:
            data = step.see(data)
        return data

    def places(self, data: bytes) -> ChainedPlaces:
        found: list[Places] = []
        for step in self.steps:
            found.insert(0, step.places(data))
            data = step.see(data)
        return ChainedPlaces(found)


def _replacing(
    pattern: re.Pattern[bytes], replacement: Callable[[re.Match[bytes]], bytes] | bytes
) -> Step:
    """A step that replaces each match."""

    def see(data: bytes) -> bytes:
        return pattern.sub(replacement, data)

    def places(data: bytes) -> Places:
        runs, last = Places(), 0
        for found in pattern.finditer(data):
            size = len(replacement if isinstance(replacement, bytes) else replacement(found))
            runs.add_kept(last, found.start())
            runs.add_replaced(*found.span(), size)
            last = found.end()
        runs.add_kept(last, len(data))
        return runs

    return Step(see, places)


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


# --- base64, and control characters inside a secret -----------------------------------------


def _joined_forms(secret: bytes) -> set[bytes]:
    """Base64, the secret itself, and UTF-16, of which the deleted NULs leave one byte of two."""
    wide: set[bytes] = set()
    if not secret.isascii():
        text = secret.decode(errors="replace")
        wide = {text.encode(f"utf-16-{order}", errors="replace") for order in ("le", "be")}
    return _long_enough(map(_joined, {*_base64_forms(secret), secret, *wide}))


def _base64_forms(secret: bytes) -> set[bytes]:
    """Only the letters that do not depend on the bytes before and after the secret."""
    forms = set()
    for before in range(3):
        letters = base64.b64encode(bytes(before) + secret)
        forms.add(letters[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6])
    return forms


def _long_enough(forms: Iterable[bytes]) -> set[bytes]:
    return {form for form in forms if len(form) >= SHORTEST_FORM}


def _joined(data: bytes) -> bytes:
    """Without line ends and control characters, and both alphabets of base64 as one."""
    return data.translate(_ONE_ALPHABET, _DELETED)


def _joined_places(data: bytes) -> Places:
    places = Places()
    for kept in _KEPT.finditer(data):
        places.add_kept(*kept.span())
    return places


def _unless_a_text_line(data: bytes) -> bytes | None:
    """None for lines of text: otherwise all that end with a certain letter would be held back."""
    ends = data.endswith(b"\n") and not _WRAPPED.search(data[-SHORTEST_WRAPPED_LINE - 2 :])
    return None if ends else data


# --- terminal sequences inside a secret -------------------------------------------------------


def _has_sequences(data: bytes) -> bool:
    return b"\x1b" in data or _has_c1_controls(data)


def _has_c1_controls(data: bytes) -> bool:
    return b"\xc2" in data and _C1_CONTROL.search(data) is not None


def _stripped(data: bytes) -> bytes:
    return (_SEQUENCE if _has_c1_controls(data) else _ESC_SEQUENCE).sub(b"", data)


def _end_with_sequences(data: bytes) -> bytes | None:
    if data.endswith(b"\xc2"):
        return data[:-1]  # the first of two bytes of a control character
    return _unless_a_text_line(data) if _has_sequences(data) else None


# --- escaped characters of JSON and XML -------------------------------------------------------


def _unescaped_forms(secret: bytes) -> set[bytes]:
    """As the steps of the view make them of the secret, which may contain escapes of its own."""
    quoted = json.dumps(secret.decode(errors="replace"))[1:-1].encode()
    twice = json.dumps(quoted.decode())[1:-1].encode()
    unescaped = (_UNESCAPING.see(text) for text in (secret, quoted, twice))
    return _long_enough(map(_joined, {*unescaped, *_base64_forms(secret)}))


def _character(escaped: re.Match[bytes]) -> bytes:
    in_json, quote, decimal, hexadecimal, entity = escaped.groups()
    if quote or entity:
        return quote or _ENTITIES[entity]
    if number := in_json or hexadecimal:
        return chr(min(int(number, 16), _LAST_CHARACTER)).encode(errors="replace")
    return chr(min(int(decimal), _LAST_CHARACTER)).encode(errors="replace")


def _has_escaped_characters(data: bytes) -> bool:
    # A single byte is found many times faster than several.
    if b"\\" in data and b"\\u00" in data:
        return True
    return b"&" in data and any(each in data for each in _ENTITY_BEGINNINGS)


def _before_begun_character(data: bytes) -> bytes | None:
    """Later output may complete an unfinished character."""
    if begun := _BEGUN_CHARACTER.search(data[-_LONGEST_BEGUN_CHARACTER:]):
        return data[: len(data) - len(begun[0])]
    return _unless_a_text_line(data) if _has_escaped_characters(data) else None


# --- percent signs --------------------------------------------------------------------------


def _percent_forms(secret: bytes) -> set[bytes]:
    return {secret, secret.replace(b" ", b"+")}


def _unquoted(data: bytes) -> bytes:
    # urllib takes a step for each escape, and an output may consist of escapes.
    return _ESCAPES.sub(_letters, data)


def _letters(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode())


def _has_escapes(data: bytes) -> bool:
    return b"%" in data and _ESCAPE.search(data) is not None


def _before_begun_escape(data: bytes) -> bytes | None:
    """Later output may complete an unfinished escape to any letter."""
    if b"%" not in data:
        return None
    begun = _BEGUN_ESCAPE.search(data)
    return data[: begun.start()] if begun else data


_JOINING = Step(_joined, _joined_places)
_STRIPPING = Step(_stripped, _replacing(_SEQUENCE, b"").places)
_UNESCAPING = _replacing(_ESCAPED_CHARACTER, _character)
_UNQUOTING = Step(_unquoted, _replacing(_ESCAPE, _letters).places)

PLAIN = View(_plain_forms)
JOINED = View(_joined_forms, (_JOINING,), searched_end=_unless_a_text_line, width=4)
STRIPPED = View(
    *(_joined_forms, (_STRIPPING, _JOINING), _has_sequences, _end_with_sequences), width=24
)
UNESCAPED = View(
    *(_unescaped_forms, (_UNESCAPING, _STRIPPING, _JOINING)),
    *(_has_escaped_characters, _before_begun_character),
    width=12,
)
PERCENT = View(_percent_forms, (_UNQUOTING,), _has_escapes, _before_begun_escape, width=3)
VIEWS = (PLAIN, JOINED, STRIPPED, UNESCAPED, PERCENT)


# --- the outline of output with colours -------------------------------------------------------

# The views that need not be searched if the outline of an output has no outline of their forms.
OUTLINED = (JOINED, STRIPPED)


def outline(data: bytes) -> bytes | None:
    """What the views in OUTLINED see, without the letters of usual sequences, wherever these are.

    None if the output has no sequences, or others. To remove the sequences alone takes twice as
    long, because each of them is a step of the regular expression."""
    if b"\x1b" not in data or _has_c1_controls(data) or _UNUSUAL_SEQUENCE.search(data):
        return None
    return data.translate(_ONE_ALPHABET, _DELETED + _USUAL_LETTERS)


def outline_of_form(form: bytes) -> bytes:
    return form.translate(None, _USUAL_LETTERS)
