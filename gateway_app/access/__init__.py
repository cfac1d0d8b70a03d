"""Access to the gateway: tokens, sessions, scopes, rate limits, and error responses.

Belongs here: authentication, authorization, rate limits and error responses.
Does not belong here: resources (api) and tables of tokens (agents_app.accounts).
"""

from gateway_app.access.auth import (
    READ,
    TO_ADMINISTER,
    TO_OPERATE,
    TO_OPERATE_RULES,
    TO_READ,
    TO_READ_RULES,
    Caller,
    admit,
    caller_of,
    caller_of_token,
    caller_with_session,
    caller_with_token,
    check_rights,
    operator_of,
    scopes_of,
)
from gateway_app.access.errors import (
    NOTHING_HERE,
    Forbidden,
    Invalid,
    TenantDisabled,
    add_handlers,
    answers,
    problem,
    sentence_error,
)
from gateway_app.access.rate_limits import RateLimit

__all__ = [
    "NOTHING_HERE",
    "READ",
    "TO_ADMINISTER",
    "TO_OPERATE",
    "TO_OPERATE_RULES",
    "TO_READ",
    "TO_READ_RULES",
    "Caller",
    "Forbidden",
    "Invalid",
    "RateLimit",
    "TenantDisabled",
    "add_handlers",
    "admit",
    "answers",
    "caller_of",
    "caller_of_token",
    "caller_with_session",
    "caller_with_token",
    "check_rights",
    "operator_of",
    "problem",
    "scopes_of",
    "sentence_error",
]
