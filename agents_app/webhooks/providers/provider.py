"""What every provider offers; each one is a value of this shape in a file of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, body_hash

MEGABYTE = 2**20
MAX_ID = 200
# An id made of the body repeats when the same thing happens again, so it counts this long only.
BODY_HASH_WINDOW_SECONDS = 300

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
    """The provider's own id, or the body's hash where it gave none that can be stored."""
    fits = (
        candidate and len(candidate) <= MAX_ID and candidate.isascii() and candidate.isprintable()
    )
    return candidate if candidate and fits else body_hash(body)


def id_in_header(name: str) -> Callable[[Headers, bytes], str]:
    return lambda headers, body: usable_id(headers.get(name), body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """`verify` is the protocol's own check; `stale` is the window that we add to it.

    `check.check` asks both: nothing else should decide whether a request is let in. `answer` is
    for what a provider asks in a delivery's place, `confirm` for what it asks with a GET.
    """

    name: str
    verify: Verify
    delivery_id: Callable[[Headers, bytes], str]
    parse: Parse
    filters: Mapping[str, FilterField] = field(default_factory=dict)
    body_limit_bytes: int = 5 * MEGABYTE
    stale: Callable[[Signed, datetime], bool] = never_stale
    answer: Callable[[Any], dict[str, Any] | None] = no_answer
    confirm: Callable[[Mapping[str, str], Secrets], dict[str, Any] | None] = no_confirmation

    @property
    def asks(self) -> bool:
        """Whether it ever sends something that is no delivery and wants to be answered."""
        return self.answer is not no_answer
