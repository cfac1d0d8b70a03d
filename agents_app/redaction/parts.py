"""The texts of a secret that are replaced in output; a file of settings has many."""

import json
import re
from collections.abc import Iterator
from typing import Any

# A shorter text may occur by chance, and replacing it would make output unreadable.
SHORTEST_SECRET = 8
SHORTEST_LINE = 16
_BETWEEN_WORDS = str.maketrans(dict.fromkeys("\"'=:,;", " "))
# `key = value`, `key: value` and `"key": "value",`, in files of any format.
_SETTING = re.compile(r"[\s{-]*(?:export\s+)?[\"']?([\w.-]+)[\"']?\s*[=:]\s*(.*?)[\s,;}]*")
# `name =`, `name: ` and `"name":` before a value. A colon inside `host:port:password` is no such
# sign, and neither is a `=` at the end of Base64.
_NAME = re.compile(
    r"""(?:^|[\s{,;])["']?([A-Za-z_][\w.-]*)(?:["']?\s*=\s*(?=[^=\s])|["']?\s*:\s+(?=\S)|["']:)"""
)
_SECRET_KEY = re.compile(r"pass|pwd|secret|token|key|credential|auth|private", re.IGNORECASE)
# Without a user; a word has lost the part before its colon.
_ADDRESS = re.compile(r"(?:\w+:)?//[^@]*\Z")
# Such as eu-central-1, europe-west4 and us-east-1a: words and a number, as regions are named.
_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+-?\d{1,2}[a-z]?")
_PLAIN_WORD = re.compile(r"[^\W\d]+(?:[.-][^\W\d]+)*")
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")


def secret_parts(secret: str) -> set[str]:
    """The texts of a secret to replace: a single line as a whole, of several lines the long ones.

    Also the values in the lines of a file, and the strings in JSON without their escapes:
    programs print the values of settings one by one."""
    return _parts_of_text(secret) | _parts_of_json(secret)


def _parts_of_text(secret: str) -> set[str]:
    text = secret.strip()
    if "\n" not in text:
        # A key file's content in one line, as JSON has it.
        parts = {text, *_long_lines(secret.replace("\\n", "\n"))}
        return parts | _values(text) if text.startswith("{") else parts
    # A JSON file has the lines of a private key in one of its own.
    lines = _long_lines(secret) | _long_lines(secret.replace("\\n", "\n"))
    return lines | {value for line in secret.splitlines() for value in _values(line)}


def _parts_of_json(text: str) -> set[str]:
    """The strings in a JSON document, except addresses and short words of the language."""
    if not text.lstrip().startswith(("{", "[")):
        return set()
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return set()
    found: set[str] = set()
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(name, each) for each in value]
        elif isinstance(value, str) and "\n" in value.strip():
            found |= _parts_of_text(value)
        elif isinstance(value, str) and _is_secret_text(value.strip(), name):
            found.add(value.strip())
    return found


def _is_secret_text(value: str, name: str) -> bool:
    """Of short values also those with spaces and signs, which are no words."""
    if _is_secret(value, name):
        return True
    known = _ADDRESS.match(value) or _REGION.fullmatch(value) or _PLAIN_WORD.fullmatch(value)
    return len(value) >= SHORTEST_SECRET and not known


def _long_lines(secret: str) -> set[str]:
    lines = (line.strip() for line in secret.replace("\r", "\n").split("\n"))
    return {ln for ln in lines if len(ln) >= SHORTEST_LINE and not ln.startswith("-----")}


def _values(line: str) -> set[str]:
    """The values in a line: its words, and all that follows the name of a setting."""
    line = line.strip()
    if line.startswith("-----"):
        return set()
    names = set(_NAME.findall(line))
    found = {word for before, word in _words(line) if _is_secret(word, before)} - names
    if setting := _SETTING.fullmatch(line):
        name, value = setting.groups()
        value = value.strip("\"'")
        found |= {value} if _is_secret(value, name) else set()
    # A line that is one word, such as a recovery code or the last line of a key.
    return found | ({line} if len(line) >= SHORTEST_SECRET and line.isalnum() else set())


def _words(line: str) -> Iterator[tuple[str, str]]:
    """Each word with the word before it."""
    words = line.translate(_BETWEEN_WORDS).split()
    return zip(["", *words], words, strict=False)


def _is_secret(value: str, name: str) -> bool:
    """A value of at least SHORTEST_LINE characters; a shorter one if its name says that it is a
    secret, or if it has letters and digits. Other short values are words of the language, or
    regions."""
    if len(value) < SHORTEST_SECRET or _ADDRESS.match(value):
        return False
    if len(value) >= SHORTEST_LINE or _SECRET_KEY.search(name):
        return True
    return bool(_LETTER.search(value) and _DIGIT.search(value)) and not _REGION.fullmatch(value)
