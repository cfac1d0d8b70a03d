"""Bearer tokens, stored as hashes: created, found, revoked and rotated here."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.errors import ConfigError, Refused
from agents_app.events import journal
from agents_app.models import ApiToken, Tenant

SHORTEST_TOKEN = 8
LONGEST_NAME = 100
# Identifies a token that is found in a log or a repository.
PREFIX = "drover_"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which is not stored and cannot be read again."""

    row: ApiToken
    secret: str


def token_hash(token: str) -> str:
    # No salt: a token is long and random, and its hash is searched in an index.
    return hashlib.sha256(token.encode()).hexdigest()


def ensure_bootstrap_token(tenant: Tenant, token: str) -> bool:
    """Store the token of DROVER_BOOTSTRAP_TOKEN; False if it is known. A revoked one stays so."""
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"DROVER_BOOTSTRAP_TOKEN is too short: use at least {SHORTEST_TOKEN} random characters"
        )
    values = {"tenant": tenant, "name": "bootstrap", "scope": ApiToken.Scope.ADMIN}
    _, created = in_transaction(
        lambda: ApiToken.objects.get_or_create(sha256=token_hash(token), defaults=values)
    )
    return created


def find_token(secret: str) -> ApiToken | None:
    """The token with this secret, with its tenant, unless it is revoked."""
    return _known().filter(sha256=token_hash(secret)).first()


def tokens_in_force(ids: Collection[int]) -> dict[int, ApiToken]:
    """The tokens with these ids, with their tenants, that are not revoked."""
    return _known().in_bulk(ids) if ids else {}


def _known() -> QuerySet[ApiToken]:
    return ApiToken.objects.select_related("tenant").filter(revoked_at__isnull=True)


def create_token(tenant: Tenant, name: str, scope: str, by: str, now: datetime) -> NewToken:
    name = name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise Refused(
            f"a token needs a name of 1 to {LONGEST_NAME} characters that says what it is for"
        )
    if scope not in ApiToken.Scope.values:
        known = ", ".join(ApiToken.Scope.values)
        raise Refused(f"unknown scope {scope!r}: use one of {known}")

    def change() -> NewToken:
        made = _make(tenant, name, scope)
        _record_event("token.created", made.row, f"{by}: {name} ({scope})", now)
        return made

    return in_transaction(change)


def revoke_token(token: ApiToken, by: str, now: datetime) -> bool:
    """Revoke the token for good; False if it was revoked before."""

    def change() -> bool:
        revoked = bool(_in_force(token.tenant).filter(pk=token.pk).update(revoked_at=now))
        if revoked:
            _record_event("token.revoked", token, f"{by}: {token.name}", now)
        return revoked

    return in_transaction(change)


def rotate_tokens(tenant: Tenant, by: str, now: datetime) -> list[NewToken]:
    """Replace every token in force by one of the same name and scope, in one transaction."""

    def change() -> list[NewToken]:
        old = list(_in_force(tenant).select_for_update().order_by("pk"))
        _in_force(tenant).filter(pk__in=[token.pk for token in old]).update(revoked_at=now)
        for token in old:
            _record_event("token.rotated", token, f"{by}: {token.name}", now)
        return [_make(tenant, token.name, token.scope) for token in old]

    return in_transaction(change)


def _in_force(tenant: Tenant) -> QuerySet[ApiToken]:
    return tenant.tokens.filter(revoked_at__isnull=True)


def _make(tenant: Tenant, name: str, scope: str) -> NewToken:
    secret = PREFIX + secrets.token_urlsafe(32)
    row = tenant.tokens.create(name=name, scope=scope, sha256=token_hash(secret))
    return NewToken(row, secret)


def _record_event(name: str, token: ApiToken, detail: str, now: datetime) -> None:
    journal.record(journal.JournalEntry(name, now, token.tenant_id, detail=detail))
