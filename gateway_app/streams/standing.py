"""Whether those who were let in still may stay: asked again and again while a stream is open."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from agents_app.accounts import tokens_in_force
from agents_app.models import ApiToken
from gateway_app.access import (
    READ,
    Caller,
    Forbidden,
    caller_of_token,
    caller_with_session,
    check_rights,
)
from gateway_app.streams.ticket import Subscriber

# Entries of the journal after which somebody may have lost the right to read the next one.
ABOUT_RIGHTS = frozenset({"token.revoked", "token.rotated", "tenant.disabled", "tenant.deleted"})


def without_rights(guests: Iterable[Subscriber]) -> frozenset[Subscriber]:
    guests = frozenset(guests)
    tokens = tokens_in_force([guest.token_id for guest in guests if guest.token_id])
    return frozenset(guest for guest in guests if not _may_stay(guest, tokens))


def _may_stay(guest: Subscriber, tokens: Mapping[int, ApiToken]) -> bool:
    caller = _caller(guest, tokens)
    if caller is None or caller.tenant.pk != guest.tenant_id:
        return False
    try:
        check_rights(caller, READ)
    except Forbidden:
        return False
    return True


def _caller(guest: Subscriber, tokens: Mapping[int, ApiToken]) -> Caller | None:
    if guest.token_id is None:
        return caller_with_session(_request(guest.session_key))
    row = tokens.get(guest.token_id)
    return None if row is None else caller_of_token(row)


def _request(session_key: str | None) -> HttpRequest:
    """As if they had asked again: logging out, a new password and lost permissions all count."""
    sessions: Any = import_module(settings.SESSION_ENGINE)
    request = HttpRequest()
    request.session = sessions.SessionStore(session_key)
    request.user = get_user(request)
    return request
