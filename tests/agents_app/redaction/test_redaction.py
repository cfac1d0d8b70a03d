"""The output of a run contains no secrets, in whatever encoding and wherever it is cut."""

import base64
import json
import random
import re
import time
from urllib.parse import quote

import pytest

from agents_app.redaction import redact
from agents_app.redaction.encodings import PLAIN, STRIPPED, outline
from agents_app.redaction.redact import RedactingSink, Redactor, secret_parts
from agents_app.text import CONTROLS

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


def coloured(secret: str) -> str:
    """As grep marks a match, and as a terminal marks each letter."""
    middle = "".join(f"\x1b[38;5;{n}m{letter}\x1b[0m" for n, letter in enumerate(secret[8:12]))
    return f"{secret[:3]}\x1b[01;31m\x1b[K{secret[3:8]}\x1b[m{middle}{secret[12:]}"


def as_go_writes_json(secret: str) -> str:
    return json.dumps(secret)[1:-1].replace("&", "\\u0026")


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
    "JSON of Go": as_go_writes_json(SECRET),
    "JSON of Go in JSON": json.dumps(as_go_writes_json(SECRET))[1:-1],
    "JSON with all letters escaped": "".join(f"\\u{ord(letter):04x}" for letter in SECRET),
    "XML": SECRET.replace("&", "&#38;").replace('"', "&#x22;").replace("ü", "&#xFC;"),
    "XML with names": SECRET.replace("&", "&amp;").replace('"', "&#34;"),
    "colours": coloured(SECRET),
    "colours in JSON": json.dumps(coloured(SECRET))[1:-1],
    "a title of the window inside": f"{SECRET[:9]}\x1b]0;title\x07{SECRET[9:]}",
    "colours after a title that ends with a C1 control": (
        f"\x1b]0;title\x9c{SECRET[:9]}\x1b[m{SECRET[9:]}"
    ),
    "colours after a title that a sequence ends": (
        f"\x9d0;title\x1b[m{SECRET[:9]}\x1b[m{SECRET[9:]}"
    ),
    "a title with letters of Latin-1 inside": f"{SECRET[:9]}\x9d0;£°\x9c{SECRET[9:]}",
    "controls of one byte": "\x01".join(SECRET),
    "controls of two bytes": f"{SECRET[:6]}\x9b1m{SECRET[6:12]}\x85{SECRET[12:]}",
    "NUL after each letter": "\0".join(SECRET),
    "base64 with NULs": "\0".join(wrapped(SECRET, 1, 999)),
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


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_a_secret_in_utf_16_is_found_wherever_it_is_cut(encoding: str, secret: str):
    text = b"before " + f"A{secret}B".encode(encoding) + b" after\n"
    assert b"[redacted" in REDACTOR.clean(text)
    for at in range(1, len(text)):
        kept = Kept()
        sink = RedactingSink(kept, REDACTOR)
        sink.feed(1, text[:at], 0.0)
        sink.feed(1, text[at:], 1.0)
        sink.finish(2.0)
        assert kept.streams[1] == REDACTOR.clean(text), f"cut at {at}"


def test_colours_around_and_after_a_secret_stay():
    data = f"\x1b[1mkey:\x1b[0m \x1b[31m{OTHER[:9]}\x1b[32m{OTHER[9:]}\x1b[0m ok\n".encode()
    cleaned = b"\x1b[1mkey:\x1b[0m \x1b[31m[redacted other]\x1b[0m ok\n"
    assert REDACTOR.clean(data) == cleaned


@pytest.mark.parametrize("piece", ["\x1b[", "\x1b]0;", "\\", "\\u", "&", "&#", "\x9b1;", "%", "\0"])
def test_hostile_output_takes_no_longer_than_other_output(piece: str):
    """Guard: no search is quadratic; 200 kB take a fraction of a second."""
    data = (piece * 200_000).encode()[:200_000]
    began = time.process_time()
    REDACTOR.spans(data)
    REDACTOR.unfinished_bytes(data)
    assert time.process_time() - began < 2


def test_the_same_sequences_are_removed_from_bytes_as_from_text():
    """Guard: the search for secrets and the log viewer must see the same text."""
    choose = random.Random(15)
    pieces = [*"\x1b\x9b\x9d\x90\x9c\x07\x85\r\n[]0;m\\ Pab£é", "\x1b[", "\x1b]0;", "\x1b\\"]
    for _ in range(3000):
        text = "".join(choose.choices(pieces, k=20))
        seen = STRIPPED.see(text.encode()).decode()
        assert seen == re.sub(CONTROLS, "", text).translate({10: None, 13: None}), repr(text)


def test_the_outline_of_coloured_output_hides_no_secret(monkeypatch: pytest.MonkeyPatch):
    """Guard: the outline decides without decoding the output, and must decide as decoding does.
    If it took each ESC for the beginning of a usual sequence, secrets would be missed."""
    choose = random.Random(90)
    secrets = ["[m4pK;zQ09[2Kxy", "h[1mJJ7t[?9lZZ"]
    letters = [*"\x1b[;?019mKAzQpx\n\x07]P", "\x1b[", "\x1b[1m", "\x1b[2K", "\x1b]0;t\x07", "\x1b7"]
    redactor = Redactor({"door": secrets})
    outputs = []
    for _ in range(3000):
        pieces = [piece for letter in choose.choice(secrets) for piece in (letter, "")]
        for _ in range(choose.randrange(4)):
            pieces[choose.randrange(1, len(pieces))] += choose.choice(letters)
        outputs.append("".join(["a ", *pieces, "".join(choose.choices(letters, k=4))]).encode())
    found = [redactor.spans(output) for output in outputs]
    monkeypatch.setattr(Redactor, "_outline_is_clean", lambda *_: False)
    assert found == [redactor.spans(output) for output in outputs]
    assert 500 < sum(bool(spans) for spans in found) < 3000


@pytest.mark.parametrize("end", ["", "\x1b", "\x1b[", "\x1b[38;5"])
def test_usual_coloured_output_without_secrets_is_not_decoded(
    end: str, monkeypatch: pytest.MonkeyPatch
):
    """Guard: decoding takes twice as long as all other searches together."""
    bar = f"\x1b[32m12:00\x1b[0m \x1b[1;34mINFO\x1b[0m ok\n\x1b[2K\x1b[1A\x1b[?25l{end}".encode()
    assert outline(bar) is not None
    assert outline(b"\x1b]0;title\x07") is None
    monkeypatch.setattr(redact, "_spans", lambda view, *_: iter(()) if view is PLAIN else 1 / 0)
    assert REDACTOR.spans(bar) == []


def test_a_secret_of_control_characters_matches_nothing_else():
    redactor = Redactor({"odd": ["\x01\x02\x03\x04\x05\x06\x07\x08ab"]})
    assert redactor.clean(b"an ab and\nnothing else") == b"an ab and\nnothing else"


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


SETTINGS = """\
# of the shop
export DB_PASSWORD='tiger;lily'
user = administrator
password: "correct horse"
{"client_secret": "hunter22x", "region": "somewhere"},
api.example.org:5432:shop:ann:s3cr3tpw
machine example.org login ann password swordfish
RECOVERYCODE
pin: 1234
"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0B\\nAQEFAASC\\n-----END-----"
"""


@pytest.mark.parametrize(
    "value",
    [
        *("tiger;lily", "correct horse", "hunter22x", "s3cr3tpw", "swordfish", "RECOVERYCODE"),
        "MIIEvQIBADANBgkqhkiG9w0B",
    ],
)
def test_short_values_inside_a_credential_of_several_lines_are_replaced(value: str):
    redactor = Redactor({"shop": [SETTINGS]})
    assert redactor.clean(f"with {value} it fails".encode()) == b"with [redacted shop] it fails"


@pytest.mark.parametrize("word", ["administrator", "somewhere", "region", "password", "1234"])
def test_names_and_plain_words_in_such_a_credential_are_shown(word: str):
    redactor = Redactor({"shop": [SETTINGS]})
    assert redactor.clean(f"the {word} is known".encode()) == f"the {word} is known".encode()


AWS = """\
[default]
aws_access_key_id = AKIAIOSFODNN7EXAMPLE
aws_session_token_of_role: IQoJb3JpZ2luX2VjEXAMPLE==
region = eu-central-1
api.example.org:5432:shop:long_password_of_ann:x
region_key = eu-central-2
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("aws_access_key_id", True), ("aws_session_token_of_role", True)),
        *(("eu-central-1", True), ("eu-central-2", False)),
        *(("AKIAIOSFODNN7EXAMPLE", False), ("IQoJb3JpZ2luX2VjEXAMPLE", False)),
        ("long_password_of_ann", False),
    ],
)
def test_names_of_settings_and_regions_are_shown(text: str, shown: bool):
    cleaned = Redactor({"aws": [AWS]}).clean(f"with {text} it fails".encode()).decode()
    assert (text in cleaned) == shown


@pytest.mark.parametrize("indent", [None, 2])
def test_the_strings_of_a_json_credential_are_replaced_without_their_escapes(indent: int | None):
    values = ['tab\tand "quotes"', "cafe\u0301 au lait", "pa ss/wo rd", "$ecret!!"]
    document = {"type": "service_account", "region": "europe-west4", "deep": [{"pw": values}]}
    redactor = Redactor({"gcp": [json.dumps(document, indent=indent)]})
    for value in values:
        assert redactor.clean_text(f"with {value} it fails") == "with [redacted gcp] it fails"
    shown = "a service_account in europe-west4"
    assert redactor.clean_text(shown) == shown


def test_text_that_only_begins_like_json_is_a_secret_as_before():
    for text in ('{"broken": "hunter22x"', "[" * 5000):
        assert secret_parts(text)


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
