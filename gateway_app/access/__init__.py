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
    bearer_token,
    caller_of,
    caller_of_token,
    caller_with_session,
    caller_with_token,
    check_rights,
    operator_of,
    request_with_session,
    scopes_of,
)
from gateway_app.access.client import client_of
from gateway_app.access.early import refuse_unknown_caller
from gateway_app.access.errors import (
    NOTHING_HERE,
    Forbidden,
    Invalid,
    TenantDisabled,
    TooMany,
    add_handlers,
    answers,
    describe_problems,
    problem,
    sentence_error,
)
from gateway_app.access.rate_limits import (
    WEBHOOK_LIMIT,
    RateLimit,
    forget_token,
    look_up_token,
    was_valid,
)

__all__ = [
    "NOTHING_HERE",
    "READ",
    "TO_ADMINISTER",
    "TO_OPERATE",
    "TO_OPERATE_RULES",
    "TO_READ",
    "TO_READ_RULES",
    "WEBHOOK_LIMIT",
    "Caller",
    "Forbidden",
    "Invalid",
    "RateLimit",
    "TenantDisabled",
    "TooMany",
    "add_handlers",
    "admit",
    "answers",
    "bearer_token",
    "caller_of",
    "caller_of_token",
    "caller_with_session",
    "caller_with_token",
    "check_rights",
    "client_of",
    "describe_problems",
    "forget_token",
    "look_up_token",
    "operator_of",
    "problem",
    "refuse_unknown_caller",
    "request_with_session",
    "scopes_of",
    "sentence_error",
    "was_valid",
]
