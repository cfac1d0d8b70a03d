"""Headers of every response: added if they are missing, never replaced."""

import asyncio
from typing import Any

import pytest

from gateway_app.asgi.headers import SecureHeaders, headers_for

EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


def headers_of_response(
    path: str, given: dict[str, str], hsts_seconds: int = 0
) -> dict[str, list[str]]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        await send({"type": "http.response.body", "body": b""})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    wrapped = SecureHeaders(app, hsts_seconds)
    asyncio.run(wrapped({"type": "http", "path": path}, None, send))  # type: ignore[arg-type]
    found: dict[str, list[str]] = {}
    for name, value in sent[0]["headers"]:
        found.setdefault(name.decode().lower(), []).append(value.decode())
    return found


@pytest.mark.parametrize("path", ["/", "/admin/", "/v1/runs", "/webhooks/github", "/static/x.js"])
def test_every_response_has_the_security_headers(path):
    headers = headers_of_response(path, {})
    assert {name: [value] for name, value in EVERYWHERE.items()}.items() <= headers.items()
    (policy,) = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert policy.startswith(("default-src 'none'", "default-src 'self'"))


def test_headers_that_the_application_has_set_are_kept_once():
    headers = headers_of_response(
        "/v1/docs/x.css", {"Cache-Control": "public", "X-Frame-Options": "DENY"}
    )
    assert headers["cache-control"] == ["public"]
    assert headers["x-frame-options"] == ["DENY"]


@pytest.mark.parametrize("path", ["/v1", "/v1/agents", "/webhooks/github", "/readyz"])
def test_responses_of_the_api_are_not_cached(path):
    assert headers_of_response(path, {})["cache-control"] == ["no-store"]


def test_hsts_is_sent_only_with_tls():
    assert "strict-transport-security" not in headers_of_response("/webhooks/github", {})
    assert headers_of_response("/", {}, 60)["strict-transport-security"] == ["max-age=60"]


@pytest.mark.parametrize("path", ["/v1/agents", "/webhooks/github", "/", "//admin/", ""])
def test_only_pages_may_load_resources(path):
    assert dict(headers_for(path))[b"content-security-policy"].startswith(b"default-src 'none'")
