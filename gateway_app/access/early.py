"""Checks the token or the session of a request before the body is read."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import parse_cookie
from starlette.types import Scope

from agents_app.accounts import find_token
from agents_app.database import ENGINE
from gateway_app.access.auth import bearer_token, request_with_session
from gateway_app.access.client import client_of
from gateway_app.access.errors import UNAUTHORIZED, TooMany
from gateway_app.access.rate_limits import look_up_token, was_valid
from gateway_app.asgi import (
    ANONYMOUS_BYTES,
    GatewayResponse,
    TooLarge,
    error_response,
    is_api_path,
    read_headers,
    retry_after,
)


async def refuse_unknown_caller(scope: Scope) -> GatewayResponse | None:
    """None if Django is to decide: the token or the session is valid, or the database does not
    answer. The session of a small body is not looked up: Django refuses it as well."""
    headers, in_api = read_headers(scope), is_api_path(scope["path"])
    try:
        if in_api and (token := bearer_token(headers.get("authorization", ""))):
            known = was_valid(token) or await asyncio.to_thread(_is_valid, token, client_of(scope))
            return None if known else _unauthorized()
        key = parse_cookie(headers.get("cookie", "")).get(settings.SESSION_COOKIE_NAME, "")
        if in_api and not key:
            return _unauthorized()
        if _is_small(headers) or (key and await asyncio.to_thread(_is_logged_in, key)):
            return None
    except TooMany as error:
        wait = retry_after(error.retry_after_seconds)
        return error_response(429, error.code, str(error), wait, close_connection=True)
    except DatabaseError:
        return None
    return _unauthorized() if in_api else _log_in_first()


def _is_valid(token: str, client: str) -> bool:
    try:
        found = look_up_token(token, client, partial(find_token, now=datetime.now(UTC)))
        return found is not None
    finally:
        ENGINE.release_connection()


def _is_logged_in(session_key: str) -> bool:
    try:
        user: Any = request_with_session(session_key).user
        return bool(user.is_authenticated)
    finally:
        ENGINE.release_connection()


def _is_small(headers: Mapping[str, str]) -> bool:
    """Whether the header says so: a body without a length may be large."""
    length = headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length[:20]) <= ANONYMOUS_BYTES


def _log_in_first() -> GatewayResponse:
    message = f"the body is too large: without a login at most {ANONYMOUS_BYTES} bytes are accepted"
    return error_response(413, TooLarge.code, message, close_connection=True)


def _unauthorized() -> GatewayResponse:
    headers = {"www-authenticate": "Bearer"}
    return error_response(401, "unauthorized", UNAUTHORIZED, headers, close_connection=True)
