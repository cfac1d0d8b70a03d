"""The one door for a request: signed, and not too long ago; what it says is not looked at."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agents_app.webhooks.providers.provider import Provider
from agents_app.webhooks.providers.signing import Secrets, Signed

UNSIGNED = "_unsigned"
Problem = Literal["bad_signature", "stale"]


@dataclass(frozen=True, slots=True)
class SignatureVerdict:
    """`signer` names the secret that signed it, also when it comes too late to be let in."""

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
    """Without any secret only those who allow it get in; with one, nobody unsigned does."""
    signer = provider.verify(request, secrets, now)
    if signer is None and not secrets and allow_unsigned:
        return SignatureVerdict(UNSIGNED)
    if signer is None:
        return SignatureVerdict(None, "bad_signature")
    return SignatureVerdict(signer, "stale" if provider.stale(request, now) else None)
