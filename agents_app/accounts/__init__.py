"""Tenants, API tokens and logins: who may use this installation.

Belongs here: code that creates, disables and removes tenants and tokens.
Does not belong here: HTTP authentication (gateway_app.api).
"""

from agents_app.accounts import logins, removal, tenants, tokens
from agents_app.accounts.logins import caller_network
from agents_app.accounts.tokens import (
    NewToken,
    create_token,
    ensure_bootstrap_token,
    find_token,
    revoke_token,
    rotate_tokens,
    token_hash,
    tokens_in_force,
)

__all__ = [
    "NewToken",
    "caller_network",
    "create_token",
    "ensure_bootstrap_token",
    "find_token",
    "logins",
    "removal",
    "revoke_token",
    "rotate_tokens",
    "tenants",
    "token_hash",
    "tokens",
    "tokens_in_force",
]
