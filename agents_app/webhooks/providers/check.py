"""Checks the signature of a request and its age; does not parse the body."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents_app.webhooks.providers.provider import Provider
from agents_app.webhooks.providers.signing import Secrets, Signed

UNSIGNED = "_unsigned"
Problem = Literal["bad_signature", "stale"]


@dataclass(frozen=True, slots=True)
class SignatureVerdict:
    """`signer` is the name of the secret that signed the request, also of a stale one."""

    signer: str | None
    problem: Problem | None = None

    @property
    def accepted(self) -> bool:
        return self.problem is None


def check_signature(
    provider: Provider,
    request: Signed,
    secrets: Secrets,
    now: datetime,
    *,
    allow_unsigned: bool = False,
) -> SignatureVerdict:
    """Accepts an unsigned request only if there is no secret and `allow_unsigned` is set."""
    signer = provider.verify(request, secrets, now)
    if signer is None and not secrets and allow_unsigned:
        return SignatureVerdict(UNSIGNED)
    if signer is None:
        return SignatureVerdict(None, "bad_signature")
    return SignatureVerdict(signer, "stale" if provider.stale(request, now) else None)
