"""Webhook requests without a server: ASGI messages to the application, and its response."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agents_app.models import Agent, Tenant, WebhookSource
from gateway_app.asgi.body import BodyBudget
from gateway_app.webhooks.receive import Webhooks

SECRET = "It's a Secret to Everybody"
ISSUE = {
    "action": "opened",
    "issue": {"number": 7, "title": "It broke", "user": {"login": "ann"}, "labels": []},
    "repository": {"full_name": "acme/site"},
    "sender": {"login": "ann"},
}


@dataclass(frozen=True)
class WebhookResponse:
    status: int
    headers: dict[str, str]
    content: Any


@dataclass(frozen=True)
class Post:
    """A request; `body` may have several pieces, with a pause before each."""

    path: str = "/webhooks/github"
    body: bytes | Sequence[bytes] = b""
    headers: Mapping[str, str] = ()  # type: ignore[assignment]
    method: str = "POST"
    query: bytes = b""
    pause_seconds: float = 0
    hangs: bool = False
    address: str = "203.0.113.5"


def signed(payload: Any, number: object = 1, event: str = "issues", secret: str = SECRET) -> Post:
    """A delivery as GitHub sends it; deliveries with different numbers have different bodies."""
    numbered = payload if isinstance(payload, bytes) else {**payload, "sent": str(number)}
    body = numbered if isinstance(numbered, bytes) else json.dumps(numbered).encode()
    mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": f"guid-{number}",
        "x-hub-signature-256": f"sha256={mac}",
    }
    return Post(body=body, headers=headers)


class WebhookClient:
    """The webhook application of the gateway in this process; its clock can be set."""

    def __init__(self, budget: BodyBudget | None = None, body_seconds: float = 5) -> None:
        self.now = datetime.now(UTC)
        self.app = Webhooks(lambda: self.now, body_seconds, budget)

    def post(self, *posts: Post) -> list[WebhookResponse]:
        """Sends all requests at the same time."""

        async def send_all() -> list[WebhookResponse]:
            return await asyncio.gather(*(self.send(post) for post in posts))

        try:
            return asyncio.run(send_all())
        finally:
            self.app.intake.stop()

    def one(self, post: Post) -> WebhookResponse:
        (answer,) = self.post(post)
        return answer

    async def send(self, post: Post) -> WebhookResponse:
        pieces = [post.body] if isinstance(post.body, bytes) else list(post.body)
        receive = BodyReceiver(pieces, post)
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        raw = [(n.encode(), v.encode("latin-1")) for n, v in dict(post.headers).items()]
        scope: dict[str, Any] = {"type": "http", "method": post.method, "path": post.path}
        scope |= {"headers": raw}
        scope |= {"query_string": post.query, "client": (post.address, 40_000)}
        await self.app(scope, receive, send)
        if not sent:
            return WebhookResponse(0, {}, None)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        headers = {n.decode(): v.decode() for n, v in sent[0]["headers"]}
        return WebhookResponse(sent[0]["status"], headers, json.loads(body) if body else None)


class BodyReceiver:
    """Returns the pieces of a body like the `receive` of a server."""

    def __init__(self, pieces: list[bytes], post: Post) -> None:
        self.pieces = pieces
        self.post = post

    async def __call__(self) -> dict[str, Any]:
        await asyncio.sleep(self.post.pause_seconds)
        if self.pieces:
            piece = self.pieces.pop(0)
            more = bool(self.pieces) or self.post.hangs
            return {"type": "http.request", "body": piece, "more_body": more}
        if self.post.hangs:
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}


def source(tenant: Tenant, name: str = "gh", **columns: Any) -> WebhookSource:
    values: dict[str, Any] = {"type": "github", "secret_refs": ["env:TEST_HOOK_SECRET"], **columns}
    return WebhookSource.objects.create(tenant=tenant, name=name, **values)


def subscribe(agent: Callable[..., Agent], name: str = "triage", **filters: Any) -> Agent:
    scale = filters.pop("scale", 1)
    source = filters.pop("source", "gh")
    return agent(name, scale=scale, webhooks=[{"source": source, "filters": filters}])
