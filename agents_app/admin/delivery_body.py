"""The body of a delivery for display: indented if it is JSON, and limited in length; pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from agents_app.text import as_text
from agents_app.webhooks.providers import Unparseable, payload_of

LONGEST = 100_000
# Indentation can multiply the length: a thousand nested brackets need a million blanks.
LONGEST_INDENTED = 3 * LONGEST


@dataclass(frozen=True, slots=True)
class ShownBody:
    """`indented` is empty for a body that is not JSON or is too long."""

    raw: str
    indented: str
    left_out: int


def shown_body(headers: Mapping[str, str], body: bytes) -> ShownBody:
    left_out = max(0, len(body) - LONGEST)
    indented = "" if left_out else _indented(headers, body)
    return ShownBody(as_text(body[:LONGEST]), indented, left_out)


def _indented(headers: Mapping[str, str], body: bytes) -> str:
    payload = payload_of(headers, body)
    if isinstance(payload, Unparseable):
        return ""
    pieces, length = [], 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(payload):
        pieces.append(piece)
        length += len(piece)
        if length > LONGEST_INDENTED:
            return ""
    return as_text("".join(pieces).encode("utf-8", "replace"))
