"""Checks the rights of subscribers repeatedly while their streams are open."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from agents_app.accounts import tokens_in_force
from agents_app.models import ApiToken
from gateway_app.access import (
    READ,
    Caller,
    Forbidden,
    TenantDisabled,
    caller_of_token,
    caller_with_session,
    check_rights,
    request_with_session,
)
from gateway_app.streams import sse
from gateway_app.streams.requests import Subscriber

# Journal entries after which a subscriber may have lost the right to read the next entry.
RIGHTS_EVENTS = frozenset({"token.revoked", "token.rotated", "tenant.disabled", "tenant.deleted"})


def without_rights(subscribers: Iterable[Subscriber]) -> dict[Subscriber, bytes]:
    """The subscribers whose token or session no longer allows reading, and their last event."""
    subscribers = frozenset(subscribers)
    ids = [each.token_id for each in subscribers if each.token_id]
    tokens = tokens_in_force(ids, datetime.now(UTC))
    found = {each: _refusal(each, tokens) for each in subscribers}
    return {each: event for each, event in found.items() if event}


def _refusal(subscriber: Subscriber, tokens: Mapping[int, ApiToken]) -> bytes:
    """The event that says why the subscriber may no longer read; empty if it may."""
    caller = _caller(subscriber, tokens)
    if caller is None or caller.tenant.pk != subscriber.tenant_id:
        return sse.UNAUTHORIZED
    try:
        check_rights(caller, READ)
    except TenantDisabled:
        return sse.TENANT_DISABLED
    except Forbidden:
        return sse.UNAUTHORIZED
    return b""


def _caller(subscriber: Subscriber, tokens: Mapping[int, ApiToken]) -> Caller | None:
    if subscriber.token_id is None:
        return caller_with_session(request_with_session(subscriber.session_key))
    row = tokens.get(subscriber.token_id)
    return None if row is None else caller_of_token(row)
