"""The header that makes a repeated request harmless: the same key, the same answer, done once."""

from typing import Annotated

from ninja import Header

from agents_app.errors import DroverError

LONGEST_KEY = 190
# Apart from the keys that webhooks and signals make for themselves.
_OURS = "api:"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=rf"^[!-~]{{1,{LONGEST_KEY}}}$",
        description="Any text of your own, once for each thing you want done.",
    ),
]


class KeyReused(DroverError):
    """The key was used before, for something else."""

    code = "idempotency_key_reused"
    http_status = 409


def stored_key(key: str | None) -> str | None:
    return None if key is None else _OURS + key


def refuse_another(same: bool) -> None:
    if not same:
        raise KeyReused("this Idempotency-Key was used for another request: take a new one")
