"""Bodies are limited in front of Django and passed on unchanged."""

import asyncio
import json
from typing import Any

import pytest

from gateway_app.asgi import error_response
from gateway_app.asgi.body import BodyBudget
from gateway_app.asgi.body_limit import ANONYMOUS_BYTES, API_BYTES, FORM_BYTES, BodyLimit
from tests.gateway_app.posting import BodyReceiver, Post

RUN = "/v1/agents/reporter/run"


class RecordingApp:
    """An application that reads its body, responds, and waits for the disconnect."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.last_messages: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})
        self.last_messages.append((await receive())["type"])


class LimitedApp:
    def __init__(self, body_seconds: float = 5, budget: BodyBudget | None = None) -> None:
        self.inner = RecordingApp()
        self.app = BodyLimit(self.inner, body_seconds, budget)

    def send(self, post: Post) -> tuple[int, dict[str, str], Any]:
        return asyncio.run(self._send(post))

    async def _send(self, post: Post) -> tuple[int, dict[str, str], Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        pieces = [post.body] if isinstance(post.body, bytes) else list(post.body)
        raw = [(n.encode(), v.encode()) for n, v in dict(post.headers).items()]
        scope = {"type": "http", "method": post.method, "path": post.path, "headers": raw}
        await self.app(scope, BodyReceiver(pieces, post), send)
        if not sent:
            return 0, {}, None
        body = b"".join(message.get("body", b"") for message in sent[1:])
        headers = {n.decode(): v.decode() for n, v in sent[0]["headers"]}
        return sent[0]["status"], headers, json.loads(body)


CHUNKED = {"transfer-encoding": "chunked"}


def length(size: int) -> dict[str, str]:
    return {"content-length": str(size)}


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        (RUN, API_BYTES),
        ("/v1", API_BYTES),
        ("/admin/agents/", FORM_BYTES),
        ("/admin/login/", ANONYMOUS_BYTES),
        ("/v1x", ANONYMOUS_BYTES),
        ("/healthz", ANONYMOUS_BYTES),
        ("/", ANONYMOUS_BYTES),
    ],
)
@pytest.mark.parametrize("headers", [CHUNKED, length(5), length(10**9), length(10**40)])
def test_one_byte_above_the_limit_is_refused_with_any_framing(path, limit, headers):
    limited = LimitedApp()
    status, response_headers, content = limited.send(Post(path, [b"x" * limit, b"x"], headers))
    assert (status, content["error"]["code"]) == (413, "too_large")
    assert response_headers["connection"] == "close"
    assert (limited.inner.bodies, limited.app.budget.used_bytes) == ([], 0)


@pytest.mark.parametrize("headers", [CHUNKED, length(API_BYTES)])
def test_a_body_of_exactly_the_limit_is_passed_on(headers):
    limited = LimitedApp()
    half = b"x" * (API_BYTES // 2)
    assert limited.send(Post(RUN, [half, half], headers))[0] == 200
    assert limited.inner.bodies == [half + half]
    assert limited.app.budget.used_bytes == 0


def test_the_application_receives_the_disconnect_after_the_body():
    limited = LimitedApp()
    limited.send(Post(RUN, b"{}", length(2)))
    assert limited.inner.last_messages == ["http.disconnect"]


@pytest.mark.parametrize("headers", [{}, length(0)])
def test_a_request_without_a_body_is_passed_on_unchanged(headers):
    """The application receives from the server directly, so the time limit does not apply."""
    limited = LimitedApp(body_seconds=0.01)
    post = Post(RUN, b"", headers, method="GET", pause_seconds=0.05)
    assert limited.send(post)[0] == 200


def test_a_body_that_is_not_sent_in_time_is_refused():
    limited = LimitedApp(body_seconds=0.1)
    status, _, content = limited.send(Post(RUN, b"{", length(2), hangs=True))
    assert (status, content["error"]["code"]) == (408, "too_slow")
    assert limited.inner.bodies == []


def test_a_client_that_disconnects_within_the_body_gets_no_response():
    limited = LimitedApp()
    cut = Post(RUN, [], length(2))
    assert limited.send(cut) == (0, {}, None)
    assert (limited.inner.bodies, limited.app.budget.used_bytes) == ([], 0)


def test_a_body_beyond_the_memory_budget_is_a_503():
    limited = LimitedApp(budget=BodyBudget(100, 100))
    status, headers, content = limited.send(Post(RUN, b"x" * 101, length(101)))
    assert (status, content["error"]["code"], headers["retry-after"]) == (503, "busy", "5")


def test_nothing_is_read_of_a_refused_request():
    async def refuse(_scope: Any) -> Any:
        return error_response(401, "unauthorized", "who is it?", close_connection=False)

    limited = LimitedApp()
    limited.app.refuse = refuse
    status, _, content = limited.send(Post(RUN, b"{", length(900_000), hangs=True))
    assert (status, content["error"]["code"]) == (401, "unauthorized")
    assert limited.inner.bodies == []


def test_a_scope_that_is_not_http_is_passed_on():
    seen: list[str] = []

    async def inner(scope: Any, *_: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BodyLimit(inner, 1)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
