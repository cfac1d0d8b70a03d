"""Bearer tokens, stored as hashes: created, found, revoked and rotated here."""

import hashlib
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address, ip_address, ip_network

from django.db.models import Q, QuerySet

from agents_app.database import in_transaction
from agents_app.errors import ConfigError, Refused
from agents_app.events import journal
from agents_app.models import ApiToken, Tenant

SHORTEST_TOKEN = 8
LONGEST_NAME = 100
MOST_ADDRESSES = 100
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


def find_token(secret: str, now: datetime) -> ApiToken | None:
    """The token with this secret, with its tenant, unless it is revoked or expired."""
    return _known(now).filter(sha256=token_hash(secret)).first()


def tokens_in_force(ids: Collection[int], now: datetime) -> dict[int, ApiToken]:
    """The tokens with these ids, with their tenants, that are neither revoked nor expired."""
    return _known(now).in_bulk(ids) if ids else {}


def may_be_used_from(token: ApiToken, address: str) -> bool:
    """Whether the address is one of the token's, or the token has none."""
    if not token.addresses:
        return True
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    return any(found in ip_network(network) for network in token.addresses)


def _known(now: datetime) -> QuerySet[ApiToken]:
    return _in_force(ApiToken.objects.select_related("tenant"), now)


def _in_force(tokens: QuerySet[ApiToken], now: datetime) -> QuerySet[ApiToken]:
    unexpired = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    return tokens.filter(unexpired, revoked_at__isnull=True)


# --- changes --------------------------------------------------------------------------------


def create_token(
    tenant: Tenant,
    name: str,
    scope: str,
    by: str,
    now: datetime,
    *,
    expires_at: datetime | None = None,
    addresses: Iterable[str] = (),
) -> NewToken:
    """Create a token that is refused from `expires_at` on, and from other addresses."""
    draft = ApiToken(
        tenant=tenant, name=name.strip(), scope=scope, expires_at=expires_at, addresses=[]
    )
    if not 0 < len(draft.name) <= LONGEST_NAME:
        raise Refused(
            f"a token needs a name of 1 to {LONGEST_NAME} characters that says what it is for"
        )
    if scope not in ApiToken.Scope.values:
        known = ", ".join(ApiToken.Scope.values)
        raise Refused(f"unknown scope {scope!r}: use one of {known}")
    if expires_at is not None and expires_at <= now:
        raise Refused("expires: the time has passed already: give a time in the future")
    draft.addresses = checked_addresses(addresses)

    def change() -> NewToken:
        made = _make(draft)
        limits = f"{draft.scope}{described_limits(draft)}"
        _record_event("token.created", made.row, f"{draft.name} ({limits})", by, now)
        return made

    return in_transaction(change)


def checked_addresses(texts: Iterable[str]) -> list[str]:
    """The networks in their usual form; an address is a network of one."""
    found: dict[str, None] = {}
    for text in texts:
        try:
            found[str(ip_network(text.strip(), strict=False))] = None
        except ValueError:
            raise Refused(
                f"addresses: {text[:80]!r} is not an address or a network: "
                "write 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32"
            ) from None
    if len(found) > MOST_ADDRESSES:
        raise Refused(f"addresses: give at most {MOST_ADDRESSES} addresses or networks")
    return list(found)


def described_limits(token: ApiToken) -> str:
    """For the journal: until when and from where the token is accepted."""
    until = f", until {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else ""
    places = ", ".join(token.addresses[:3]) + (" ..." if len(token.addresses) > 3 else "")
    return until + (f", from {places}" if places else "")


def revoke_token(token: ApiToken, by: str, now: datetime) -> bool:
    """Revoke the token for good; False if it was revoked before."""
    unrevoked = token.tenant.tokens.filter(pk=token.pk, revoked_at__isnull=True)

    def change() -> bool:
        revoked = bool(unrevoked.update(revoked_at=now))
        if revoked:
            _record_event("token.revoked", token, token.name, by, now)
        return revoked

    return in_transaction(change)


def rotate_tokens(tenant: Tenant, by: str, now: datetime) -> list[NewToken]:
    """Replace every token in force by one of the same name, scope, expiry and addresses, in one
    transaction."""

    def change() -> list[NewToken]:
        old = list(_in_force(tenant.tokens.all(), now).select_for_update().order_by("pk"))
        tenant.tokens.filter(pk__in=[token.pk for token in old]).update(revoked_at=now)
        for token in old:
            _record_event("token.rotated", token, token.name, by, now)
        return [_make(token) for token in old]

    return in_transaction(change)


def _make(like: ApiToken) -> NewToken:
    """A new token with the name, scope and limits of `like`."""
    secret = PREFIX + secrets.token_urlsafe(32)
    row = like.tenant.tokens.create(
        name=like.name,
        scope=like.scope,
        sha256=token_hash(secret),
        expires_at=like.expires_at,
        addresses=like.addresses,
    )
    return NewToken(row, secret)


def _record_event(name: str, token: ApiToken, about: str, by: str, now: datetime) -> None:
    detail = f"{by}: {about}"
    journal.record(journal.JournalEntry(name, now, token.tenant_id, detail=detail, actor=by))
