"""Who may call the gateway: tokens, sessions, scopes, rate limits, and the shape of a refusal.

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
from gateway_app.access.complaints import said
from gateway_app.access.problems import Forbidden, Invalid, add_handlers, answers, problem
from gateway_app.access.rate import RateLimit

__all__ = [
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
    "said",
    "scopes_of",
]
