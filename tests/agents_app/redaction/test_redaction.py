"""The output of a run contains no secrets, in whatever encoding and wherever it is cut."""

import base64
import json
import random
from urllib.parse import quote

import pytest

from agents_app.redaction.redact import RedactingSink, Redactor, secret_parts

SECRET = 'canary/7f3+Qz "w" ü&9~kX2'
OTHER = "0123456789abcdef0123456789abcdef"
MARK = b"[redacted door]"
REDACTOR = Redactor({"door": [SECRET], "other": [OTHER]})


class Kept:
    """A sink that keeps what it is fed, by stream."""

    def __init__(self) -> None:
        self.streams: dict[int, bytes] = {}
        self.flushes = 0

    def feed(self, stream: int, data: bytes, _at: float) -> None:
        self.streams[stream] = self.streams.get(stream, b"") + data

    def flush(self) -> None:
        self.flushes += 1


def fully_escaped(secret: str, form: str = "%{:02X}") -> str:
    return "".join(form.format(byte) for byte in secret.encode())


def half_escaped(secret: str) -> str:
    letters = secret.encode()
    return "".join(chr(c) if c < 128 and i % 2 else f"%{c:02x}" for i, c in enumerate(letters))


def wrapped(secret: str, before: int, width: int) -> str:
    letters = base64.b64encode(b"x" * before + secret.encode()).decode()
    return "\n".join(letters[i : i + width] for i in range(0, len(letters), width))


ENCODED = {
    "raw": SECRET,
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON in UTF-8": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "JSON in JSON": json.dumps(json.dumps(SECRET))[1:-1],
    "JSON with escaped slashes": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "Python": repr(SECRET)[1:-1],
    "HTML": SECRET.replace("&", "&amp;").replace('"', "&quot;"),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
    **{f"base64 after {n}": wrapped(SECRET, n, 999) for n in range(4)},
    **{
        f"base64 for URLs after {n}": wrapped(SECRET, n, 999).translate({43: 45, 47: 95})
        for n in (0, 1)
    },
    **{f"base64 in lines after {n}": wrapped(SECRET, n, 20) for n in (0, 10, 17)},
    "base64 in lines of DOS": wrapped(SECRET, 50, 76).replace("\n", "\r\n"),
    "percent": quote(SECRET, safe=""),
    "percent, lower case": quote(SECRET, safe="").lower().replace("qz", "Qz").replace("kx", "kX"),
    "percent, of a form": quote(SECRET, safe="").replace("%20", "+"),
    "percent, path": quote(SECRET),
    "percent, all of it": fully_escaped(SECRET),
    "percent, all of it in lower case": fully_escaped(SECRET, "%{:02x}"),
    "percent, half of it": half_escaped(SECRET),
}


def core(text: str) -> bytes:
    """The middle of a text, which must not be in the output either."""
    data = text.encode()
    return data[len(data) // 3 : -len(data) // 3]


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED)
def test_a_secret_is_found_in_every_encoding(encoded: str):
    cleaned = REDACTOR.clean(f"before {encoded} after".encode())
    assert cleaned.startswith(b"before ") and cleaned.endswith(b" after")
    assert cleaned.count(MARK) == 1
    assert core(encoded) not in cleaned


@pytest.mark.parametrize("encoded", ENCODED.values(), ids=ENCODED)
def test_wherever_an_output_is_cut_the_secret_is_found(encoded: str):
    """Guard: what may be the beginning of a secret is held back until the rest comes."""
    text = f"before {encoded} after\n".encode()
    for at in range(1, len(text)):
        kept = Kept()
        sink = RedactingSink(kept, REDACTOR)
        sink.feed(1, text[:at], 0.0)
        sink.flush()
        sink.feed(2, b"meanwhile on the other stream\n", 0.5)
        sink.feed(1, text[at:], 1.0)
        sink.finish(2.0)
        assert kept.streams[1] == REDACTOR.clean(text), f"cut at {at}"


def test_a_secret_that_comes_byte_by_byte_is_found():
    for encoded in ENCODED.values():
        kept = Kept()
        sink = RedactingSink(kept, REDACTOR)
        for byte in f"before {encoded} after\n".encode():
            sink.feed(1, bytes([byte]), 0.0)
            sink.flush()
        sink.finish(1.0)
        assert MARK in kept.streams[1], encoded


def test_everything_else_passes_unchanged_whatever_it_looks_like():
    """Guard: bytes are counted and shown as they came; nothing is lost at the end."""
    chance = random.Random(7)
    letters = b"c an/%2541ry\n\r\xff\x00=+" + SECRET.encode()
    for _ in range(300):
        pieces = [bytes(chance.choices(letters, k=chance.randrange(40))) for _ in range(5)]
        kept = Kept()
        sink = RedactingSink(kept, REDACTOR)
        for piece in pieces:
            sink.feed(1, piece, 0.0)
        sink.finish(1.0)
        assert kept.streams.get(1, b"") == b"".join(pieces)


@pytest.mark.parametrize(
    "line", ["Done.\n", "it is done\n", "50 %\n", "naïve Z2\n", "100%\r\n", "> "]
)
def test_a_line_of_text_is_shown_at_once(line: str):
    """Guard: users follow a run by its lines; only what may become a secret is held back."""
    kept = Kept()
    RedactingSink(kept, REDACTOR).feed(1, line.encode(), 0.0)
    assert kept.streams[1] == line.encode()


def test_at_most_the_length_of_the_longest_form_is_held_back():
    kept = Kept()
    sink = RedactingSink(kept, REDACTOR)
    sink.feed(1, fully_escaped(SECRET[:-1]).encode() * 50, 0.0)
    assert len(kept.streams[1]) > 40 * len(fully_escaped(SECRET[:-1]))


def test_secrets_that_overlap_are_both_replaced():
    redactor = Redactor({"one": ["abcdefghij"], "two": ["ghijklmnop"], "three": ["cdefghijkl"]})
    assert redactor.clean(b"-abcdefghijklmnop-") == b"-[redacted one]-"
    assert redactor.clean(b"-abcdefghij-ghijklmnop-") == b"-[redacted one]-[redacted two]-"


def test_each_long_line_of_a_key_counts():
    line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9u"
    key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{line}\nZQAA\n-----END-----\n"
    assert secret_parts(key) == {line}
    redactor = Redactor({"git_ssh": [key]})
    assert b"b3Blbn" not in redactor.clean(json.dumps({"key": key}).encode())
    assert b"b3Blbn" not in redactor.clean(key.replace("\n", "\r\n").encode())


def test_the_values_in_a_file_of_settings_count_one_by_one():
    text = '{\n  "key_id": "d41d8cd98f00b204",\n  "uri": "https://example.org/a/long/path"\n}\n'
    redactor = Redactor({"gcp": [text]})
    assert redactor.clean(b"key d41d8cd98f00b204 of https://example.org/a/long/path") == (
        b"key [redacted gcp] of https://example.org/a/long/path"
    )


def test_a_key_in_one_line_is_found_in_several_too():
    redactor = Redactor(
        {"gcp": ['{"private_key": "-----BEGIN\\nMIIEvQIBADANBgkqhkiG9w0B\\n-----END"}']}
    )
    assert redactor.clean(b"MIIEvQIBADANBgkqhkiG9w0B\n") == b"[redacted gcp]\n"


def test_texts_are_cleaned_like_bytes():
    assert REDACTOR.clean_text(f"cannot log in with {SECRET}: é\udcff") == (
        "cannot log in with [redacted door]: é\udcff"
    )
    assert Redactor({}).clean_text("as it is") == "as it is"
