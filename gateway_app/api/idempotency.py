"""The Idempotency-Key header: a repeated request has the same response and no second effect."""

from typing import Annotated

from ninja import Header

from agents_app.errors import DroverError

LONGEST_KEY = 190
# Keeps the keys of clients apart from those that Drover makes for webhooks and signals.
_PREFIX = "api:"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=rf"^[!-~]{{1,{LONGEST_KEY}}}$",
        description="Any text, a new one for each new request; a repeated request repeats it.",
    ),
]


class KeyReused(DroverError):
    """The key was used before, for a different request."""

    code = "idempotency_key_reused"
    http_status = 409


def stored_key(key: str | None) -> str | None:
    return None if key is None else _PREFIX + key


def refuse_other_request(same: bool) -> None:
    if not same:
        raise KeyReused("this Idempotency-Key was used for a different request: send a new key")
