"""Tenants, API tokens, groups and logins: who may use this installation.

Belongs here: code that creates, disables and removes tenants, tokens and groups.
Does not belong here: HTTP authentication (gateway_app.api).
"""

from agents_app.accounts import login_links, logins, removal, tenants, tokens
from agents_app.accounts.groups import create_groups
from agents_app.accounts.logins import caller_network
from agents_app.accounts.passwords import change_password
from agents_app.accounts.project_directories import change_project, project_problem
from agents_app.accounts.tokens import (
    NewToken,
    create_token,
    ensure_bootstrap_token,
    find_token,
    may_be_used_from,
    revoke_token,
    rotate_tokens,
    token_hash,
    tokens_in_force,
)

__all__ = [
    "NewToken",
    "caller_network",
    "change_password",
    "change_project",
    "create_groups",
    "create_token",
    "ensure_bootstrap_token",
    "find_token",
    "login_links",
    "logins",
    "may_be_used_from",
    "project_problem",
    "removal",
    "revoke_token",
    "rotate_tokens",
    "tenants",
    "token_hash",
    "tokens",
    "tokens_in_force",
]
