"""Webhooks at the door, in front of Django, which would read a whole body before any check.

The order is fixed: size while it streams, signature, time, one commit, the answer; hints come last.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from agents_app.webhooks import IndexedSource, SourceIndex
from agents_app.webhooks.providers import (
    RawDelivery,
    SignatureVerdict,
    Signed,
    check_signature,
    payload_of,
)
from gateway_app.asgi import (
    Answer,
    App,
    Body,
    BodyError,
    Budget,
    Gone,
    Message,
    Receive,
    Send,
    bad_body,
    read_headers,
    unavailable,
)
from gateway_app.webhooks.answers import accepted, no_such_source, not_allowed, refused
from gateway_app.webhooks.intake import Intake, Unavailable
from gateway_app.webhooks.source_cache import SourceCache

PREFIX = "/webhooks/"
# Hashing more than this at once would hold up everybody else on the event loop.
BIG_BODY_BYTES = 256 * 1024
LONGEST_QUERY_BYTES = 2000


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """/webhooks/<provider>[/<source>[/<secret>]]"""

    kind: str
    source: str = ""
    secret: str = field(default="", repr=False)


class Webhooks:
    def __init__(
        self,
        app: App,
        clock: Callable[[], datetime],
        body_seconds: float,
        budget: Budget | None = None,
    ) -> None:
        self.app = app
        self.clock = clock
        self.body_seconds = body_seconds
        self.budget = budget or Budget()
        self.intake = Intake(clock)
        self.books = SourceCache()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope, receive)
        except Gone:
            return
        await answer.send(receive, send)

    async def _answer(self, scope: Message, receive: Receive) -> Answer:
        target = read_target(scope["path"])
        try:
            book = await self.books.current()
            sources = book.find(target.kind, target.source) if target else ()
            if target is None or not sources:
                return no_such_source()
            if scope["method"] == "GET" and (said := confirmed(sources, scope["query_string"])):
                return Answer(200, said)
            if scope["method"] != "POST":
                return not_allowed()
            return await self._read(scope, receive, book, target, sources)
        except BodyError as error:
            return bad_body(error)
        except Unavailable:
            return unavailable()

    async def _read(
        self,
        scope: Message,
        receive: Receive,
        book: SourceIndex,
        target: WebhookTarget,
        sources: tuple[IndexedSource, ...],
    ) -> Answer:
        headers = read_headers(scope)
        limit = max(source.provider.body_limit_bytes for source in sources)
        body = Body(receive, limit, self.budget)
        try:
            raw = await body.read(headers.get("content-length", ""), self.body_seconds)
            return await self._check(Signed(headers, raw, target.secret), book, target, sources)
        finally:
            body.close()

    async def _check(
        self,
        request: Signed,
        book: SourceIndex,
        target: WebhookTarget,
        sources: tuple[IndexedSource, ...],
    ) -> Answer:
        now = self.clock()
        if len(request.body) > BIG_BODY_BYTES:
            source, verdict = await asyncio.to_thread(check_all, sources, request, now)
        else:
            source, verdict = check_all(sources, request, now)
        if not verdict.accepted:
            self.intake.refuse(target.kind, verdict.problem or "", sources)
            return refused(verdict.problem == "stale")
        if said := asked(source, request):
            return Answer(200, said)
        identity = source.provider.delivery_id(request.headers, request.body)
        letter = RawDelivery(request.headers, request.body, identity, now)
        receipt = await self.intake.store(book, source, letter, verdict.signer or "")
        return accepted(receipt)


def asked(source: IndexedSource, request: Signed) -> dict[str, Any] | None:
    """The answer to a question that a provider asks before it sends anything, such as a ping."""
    if not source.provider.asks:
        return None
    return source.provider.answer(payload_of(request.headers, request.body))


def confirmed(sources: tuple[IndexedSource, ...], query: bytes) -> dict[str, Any] | None:
    """The answer to a provider that asks whose address this is; of one source, or whose would it
    be?"""
    if len(sources) != 1:
        return None
    asked = dict(parse_qsl(query[:LONGEST_QUERY_BYTES].decode("latin-1")))
    return sources[0].provider.confirm(asked, sources[0].secrets)


def read_target(path: str) -> WebhookTarget | None:
    parts = path.removeprefix(PREFIX).removesuffix("/").split("/")
    return WebhookTarget(*parts) if all(parts) and len(parts) <= 3 else None


def check_all(
    sources: tuple[IndexedSource, ...], request: Signed, now: datetime
) -> tuple[IndexedSource, SignatureVerdict]:
    """The first source that lets it in; all are asked, so that time does not tell which."""
    verdicts = [
        (
            source,
            check_signature(
                source.provider, request, source.secrets, now, allow_unsigned=source.allow_unsigned
            ),
        )
        for source in sources
    ]
    late = [pair for pair in verdicts if pair[1].signer is not None]
    let_in = [pair for pair in verdicts if pair[1].accepted]
    return (let_in or late or verdicts)[0]
