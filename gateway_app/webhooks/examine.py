"""Checks a received webhook: the source that signed it, its challenge and its id; pure."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.webhooks import IndexedSource, SourceIndex
from agents_app.webhooks.providers import (
    PROVIDERS,
    TRIAL_PROVIDERS,
    UNSIGNED,
    Provider,
    SignatureVerdict,
    Signed,
    check_signature,
    payload_of,
)
from gateway_app.asgi import MEGABYTE, TooLarge

# An unsigned body is parsed for any client.
UNSIGNED_BODY_BYTES = MEGABYTE


@dataclass(frozen=True, slots=True)
class Examined:
    """`source` is None if there is none at the address; `answer` responds to a challenge."""

    source: IndexedSource | None
    verdict: SignatureVerdict
    answer: dict[str, Any] | None = None
    delivery_id: str = ""


def body_limit(kind: str, sources: tuple[IndexedSource, ...]) -> int:
    """The same for every source of a provider, whether it exists or not."""
    limit = provider_of(kind).body_limit_bytes
    unsigned = sources and all(source.allow_unsigned for source in sources)
    return min(limit, UNSIGNED_BODY_BYTES) if unsigned else limit


def examine(
    index: SourceIndex,
    kind: str,
    sources: tuple[IndexedSource, ...],
    signed: Signed,
    now: datetime,
) -> Examined:
    """A refusal takes as long as with the most work of a source of the provider, whether a source
    with the name exists or not.

    Raises TooLarge for a large body that is accepted without a signature."""
    if not sources:
        _pass_time(index, kind, signed, now, Counter())
        return Examined(None, SignatureVerdict(None, "bad_signature"))
    source, verdict = check_all(sources, signed, now)
    if not verdict.accepted:
        done = sum((each.work for each in sources), Counter[str]())
        _pass_time(index, kind, signed, now, done)
        return Examined(source, verdict)
    if verdict.signer == UNSIGNED and len(signed.body) > UNSIGNED_BODY_BYTES:
        # The limit while the body is read is that of another source of the address.
        raise TooLarge(f"the body is too large: unsigned at most {UNSIGNED_BODY_BYTES} bytes")
    answer = challenge_answer(source, signed)
    identity = "" if answer else source.provider.delivery_id(signed.headers, signed.body)
    return Examined(source, verdict, answer, identity)


def check_all(
    sources: tuple[IndexedSource, ...], signed: Signed, now: datetime
) -> tuple[IndexedSource, SignatureVerdict]:
    """The first source that accepts the signature; all are tried, so that the time is the same."""
    verdicts = [
        (
            source,
            check_signature(
                source.provider, signed, source.secrets, now, allow_unsigned=source.allow_unsigned
            ),
        )
        for source in sources
    ]
    stale = [pair for pair in verdicts if pair[1].signer is not None]
    accepting = [pair for pair in verdicts if pair[1].accepted]
    return (accepting or stale or verdicts)[0]


def challenge_answer(source: IndexedSource, signed: Signed) -> dict[str, Any] | None:
    """The response to a challenge that the provider sends before events; None for a delivery."""
    if not source.provider.sends_challenges:
        return None
    return source.provider.answer(payload_of(signed.headers, signed.body))


def _pass_time(
    index: SourceIndex, kind: str, signed: Signed, now: datetime, done: Counter[str]
) -> None:
    """Verifies with stand-ins for the secrets that were not verified, and ignores the results."""
    provider = provider_of(kind)
    most = index.most_work(kind) or Counter([provider.stand_in("")])
    for stand_in in (most - done).elements():
        provider.verify(signed, {"": stand_in}, now)


def provider_of(kind: str) -> Provider:
    return PROVIDERS.get(kind) or TRIAL_PROVIDERS.get(kind) or PROVIDERS["generic"]
