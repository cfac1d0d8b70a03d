"""The type of a provider; each provider is one instance, in its own file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, body_hash

MEGABYTE = 2**20
MAX_ID = 200
# The hash of a body serves as the delivery id for so long: equal events may happen again later.
BODY_HASH_WINDOW_SECONDS = 300
# Of a provider with `unique_bodies`, a body that was received within this time is a duplicate.
UNIQUE_BODY_SECONDS = 24 * 3600

Verify = Callable[[Signed, Secrets, datetime], str | None]
Parse = Callable[[Headers, Any, datetime], Context | None]


def never_stale(request: Signed, now: datetime) -> bool:
    del request, now
    return False


def no_answer(payload: Any) -> dict[str, Any] | None:
    del payload
    return None


def no_confirmation(query: Mapping[str, str], secrets: Secrets) -> dict[str, Any] | None:
    del query, secrets
    return None


def usable_id(candidate: str | None, body: bytes) -> str:
    """The id that the provider gave, or the hash of the body if that id cannot be stored."""
    fits = (
        candidate and len(candidate) <= MAX_ID and candidate.isascii() and candidate.isprintable()
    )
    return candidate if candidate and fits else body_hash(body)


def id_in_header(name: str) -> Callable[[Headers, bytes], str]:
    return lambda headers, body: usable_id(headers.get(name), body)


def any_secret(secret: str) -> str:
    """For signatures whose verification takes the same time with every secret."""
    del secret
    return "no secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """`verify` is the check that the provider documents; `stale` is an additional limit on the age.

    Only `check_signature` calls both and decides whether a request is accepted. `answer` returns
    the response to a challenge that is sent like a delivery, `confirm` to one that is sent by GET.

    With `unique_bodies` the signature covers the body alone, so a client that has seen a delivery
    can change its id and event; and two events never have the same body. A repeated body is then a
    duplicate, whatever its headers are.
    """

    name: str
    verify: Verify
    delivery_id: Callable[[Headers, bytes], str]
    parse: Parse
    filters: Mapping[str, FilterField] = field(default_factory=dict)
    body_limit_bytes: int = 5 * MEGABYTE
    unique_bodies: bool = False
    # Without it, `verify` takes the same time for a body of any length.
    signs_body: bool = True
    # A secret of no source, with which `verify` takes as long as with the given one.
    stand_in: Callable[[str], str] = any_secret
    # Whether `stale`, `answer` or `delivery_id` parse the body.
    parses_early: bool = False
    # Whether a delivery that was refused with 429 is sent again.
    sends_again: bool = True
    stale: Callable[[Signed, datetime], bool] = never_stale
    answer: Callable[[Any], dict[str, Any] | None] = no_answer
    confirm: Callable[[Mapping[str, str], Secrets], dict[str, Any] | None] = no_confirmation

    @property
    def sends_challenges(self) -> bool:
        """Whether the provider sends challenges like deliveries, which `answer` answers."""
        return self.answer is not no_answer
