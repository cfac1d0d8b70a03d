"""Checks the bearer token of an API request before the body is read."""

import asyncio
from datetime import UTC, datetime
from functools import partial

from django.conf import settings
from django.db import DatabaseError
from django.http import parse_cookie
from starlette.types import Scope

from agents_app.accounts import find_token
from agents_app.database import ENGINE
from agents_app.models import ApiToken
from gateway_app.access.auth import bearer_token
from gateway_app.access.client import client_of
from gateway_app.access.errors import UNAUTHORIZED, TooMany
from gateway_app.access.rate_limits import look_up_token, was_valid
from gateway_app.asgi import (
    GatewayResponse,
    error_response,
    is_api_path,
    read_headers,
    retry_after,
)


async def refuse_unknown_caller(scope: Scope) -> GatewayResponse | None:
    """None if Django is to decide: the token is valid, the request has the cookie of a session, or
    the database does not answer."""
    if not is_api_path(scope["path"]):
        return None
    headers = read_headers(scope)
    token = bearer_token(headers.get("authorization", ""))
    if not token:
        cookies = parse_cookie(headers.get("cookie", ""))
        return None if settings.SESSION_COOKIE_NAME in cookies else _unauthorized()
    if was_valid(token):
        return None
    try:
        found = await asyncio.to_thread(_look_up, token, client_of(scope))
    except TooMany as error:
        wait = retry_after(error.retry_after_seconds)
        return error_response(429, error.code, str(error), wait, close_connection=True)
    except DatabaseError:
        return None
    return None if found else _unauthorized()


def _look_up(token: str, client: str) -> ApiToken | None:
    try:
        return look_up_token(token, client, partial(find_token, now=datetime.now(UTC)))
    finally:
        ENGINE.release_connection()


def _unauthorized() -> GatewayResponse:
    headers = {"www-authenticate": "Bearer"}
    return error_response(401, "unauthorized", UNAUTHORIZED, headers, close_connection=True)
