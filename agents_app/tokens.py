"""Bearer tokens: made or taken once, kept as hashes only."""

import hashlib

from agents_app.commit import in_transaction
from agents_app.errors import ConfigError
from agents_app.models import ApiToken, Tenant

SHORTEST_TOKEN = 8


def token_hash(token: str) -> str:
    # No salt: a token is random and long, and a hash must be found by lookup.
    return hashlib.sha256(token.encode()).hexdigest()


def ensure_bootstrap_token(tenant: Tenant, token: str) -> bool:
    """True if it was made now; one that was revoked stays revoked."""
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"DROVER_BOOTSTRAP_TOKEN is too short: use at least {SHORTEST_TOKEN} random characters"
        )
    values = {"tenant": tenant, "name": "bootstrap", "scope": ApiToken.Scope.ADMIN}
    _, created = in_transaction(
        lambda: ApiToken.objects.get_or_create(sha256=token_hash(token), defaults=values)
    )
    return created
