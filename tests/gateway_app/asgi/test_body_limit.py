"""Bodies in front of Django: counted while they come, handed on whole, and nothing else changed."""

import asyncio
import json
from typing import Any

import pytest

from gateway_app.asgi.body import BodyBudget
from gateway_app.asgi.body_limit import API_BYTES, FORM_BYTES, BodyLimit
from tests.gateway_app.posting import Coming, Post

RUN = "/v1/agents/reporter/run"


class Inner:
    """An application that reads its body, answers, and waits for the client to hang up."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.heard_last: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})
        self.heard_last.append((await receive())["type"])


class Front:
    def __init__(self, body_seconds: float = 5, budget: BodyBudget | None = None) -> None:
        self.inner = Inner()
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
        await self.app(scope, Coming(pieces, post), send)
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
        ("/v1x", FORM_BYTES),
    ],
)
@pytest.mark.parametrize("headers", [CHUNKED, length(5), length(10**9), length(10**40)])
def test_one_byte_too_many_is_refused_however_it_is_announced(path, limit, headers):
    front = Front()
    status, answered, content = front.send(Post(path, [b"x" * limit, b"x"], headers))
    assert (status, content["error"]["code"]) == (413, "too_large")
    assert answered["connection"] == "close"
    assert (front.inner.bodies, front.app.budget.used_bytes) == ([], 0)


@pytest.mark.parametrize("headers", [CHUNKED, length(API_BYTES)])
def test_a_body_of_exactly_the_limit_is_handed_on_whole(headers):
    front = Front()
    half = b"x" * (API_BYTES // 2)
    assert front.send(Post(RUN, [half, half], headers))[0] == 200
    assert front.inner.bodies == [half + half]
    assert front.app.budget.used_bytes == 0


def test_the_application_still_hears_that_the_client_has_hung_up():
    front = Front()
    front.send(Post(RUN, b"{}", length(2)))
    assert front.inner.heard_last == ["http.disconnect"]


@pytest.mark.parametrize("headers", [{}, length(0)])
def test_a_request_without_a_body_passes_untouched(headers):
    """The application asks the server itself: nothing waits here, whatever the time limit."""
    front = Front(body_seconds=0.01)
    post = Post(RUN, b"", headers, method="GET", pause_seconds=0.05)
    assert front.send(post)[0] == 200


def test_a_body_that_does_not_come_is_not_waited_for():
    front = Front(body_seconds=0.1)
    status, _, content = front.send(Post(RUN, b"{", length(2), hangs=True))
    assert (status, content["error"]["code"]) == (408, "too_slow")
    assert front.inner.bodies == []


def test_whoever_hangs_up_halfway_gets_no_answer():
    front = Front()
    cut = Post(RUN, [], length(2))
    assert front.send(cut) == (0, {}, None)
    assert (front.inner.bodies, front.app.budget.used_bytes) == ([], 0)


def test_more_at_once_than_there_is_room_for_is_told_to_come_again():
    front = Front(budget=BodyBudget(100))
    status, headers, content = front.send(Post(RUN, b"x" * 101, length(101)))
    assert (status, content["error"]["code"], headers["retry-after"]) == (503, "busy", "5")


def test_what_is_no_request_is_passed_on():
    seen: list[str] = []

    async def inner(scope: Any, *_: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BodyLimit(inner, 1)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
