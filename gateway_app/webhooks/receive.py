"""Receives webhooks in front of Django, which would read a whole body before any check.

The order is fixed: size while the body is read, signature, age, one commit, the response.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agents_app.webhooks import IndexedSource, SourceIndex
from agents_app.webhooks.providers import (
    RawDelivery,
    SignatureVerdict,
    Signed,
    check_signature,
    payload_of,
)
from gateway_app.access import client_of
from gateway_app.asgi import (
    Body,
    BodyBudget,
    BodyError,
    GatewayResponse,
    body_error_response,
    read_headers,
)
from gateway_app.webhooks.intake import Intake, Unavailable
from gateway_app.webhooks.responses import (
    accepted,
    method_not_allowed,
    no_such_source,
    refused,
    unavailable,
)
from gateway_app.webhooks.source_cache import SourceCache

PREFIX = "/webhooks/"
MEGABYTE = 2**20
# Two of the largest bodies of one client at the same time, and 128 of 128 kB.
LARGE_BYTES, SMALL_BYTES = 128 * MEGABYTE, 32 * MEGABYTE
# Hashing more bytes than this would block all other connections of the event loop.
LARGE_BODY_BYTES = 256 * 1024
LONGEST_QUERY_BYTES = 2000


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """/webhooks/<provider>[/<source>[/<secret>]]"""

    kind: str
    source: str = ""
    secret: str = field(default="", repr=False)


class Webhooks:
    """The ASGI application of all paths below /webhooks/."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        body_seconds: float,
        budget: BodyBudget | None = None,
    ) -> None:
        self.clock = clock
        self.body_seconds = body_seconds
        self.budget = budget or BodyBudget(LARGE_BYTES, SMALL_BYTES)
        self.intake = Intake(clock)
        self.sources = SourceCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._respond(scope, receive)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> GatewayResponse:
        target, method = read_target(scope["path"]), scope["method"]
        try:
            index = await self.sources.current()
            sources = index.find(target.kind, target.source) if target else ()
            if target is None or not sources:
                return no_such_source()
            if method == "GET" and (content := confirmation(sources, scope["query_string"])):
                return GatewayResponse(content)
            if method != "POST":
                return method_not_allowed()
            return await self._read(scope, receive, index, target, sources)
        except BodyError as error:
            return body_error_response(error)
        except Unavailable:
            return unavailable()

    async def _read(
        self,
        scope: Scope,
        receive: Receive,
        index: SourceIndex,
        target: WebhookTarget,
        sources: tuple[IndexedSource, ...],
    ) -> GatewayResponse:
        headers = read_headers(scope)
        limit = max(source.provider.body_limit_bytes for source in sources)
        body = Body(receive, limit, self.budget, client_of(scope))
        try:
            content = await body.read(headers.get("content-length", ""), self.body_seconds)
            signed = Signed(headers, content, target.secret)
            return await self._check(signed, index, target, sources)
        finally:
            body.close()

    async def _check(
        self,
        signed: Signed,
        index: SourceIndex,
        target: WebhookTarget,
        sources: tuple[IndexedSource, ...],
    ) -> GatewayResponse:
        now = self.clock()
        if len(signed.body) > LARGE_BODY_BYTES:
            source, verdict = await asyncio.to_thread(check_all, sources, signed, now)
        else:
            source, verdict = check_all(sources, signed, now)
        if not verdict.accepted:
            self.intake.refuse(target.kind, verdict.problem or "", sources)
            return refused(stale=verdict.problem == "stale")
        if content := challenge_answer(source, signed):
            return GatewayResponse(content)
        identity = source.provider.delivery_id(signed.headers, signed.body)
        raw = RawDelivery(signed.headers, signed.body, identity, now)
        receipt = await self.intake.store(index, source, raw, verdict.signer or "")
        return accepted(receipt)


def challenge_answer(source: IndexedSource, signed: Signed) -> dict[str, Any] | None:
    """The response to a challenge that the provider sends before events; None for a delivery."""
    if not source.provider.sends_challenges:
        return None
    return source.provider.answer(payload_of(signed.headers, signed.body))


def confirmation(sources: tuple[IndexedSource, ...], query: bytes) -> dict[str, Any] | None:
    """The response to a provider that checks by GET that the address has its secret.

    None if several sources share the address: each has its own secret."""
    if len(sources) != 1:
        return None
    parameters = QueryParams(query[:LONGEST_QUERY_BYTES])
    return sources[0].provider.confirm(parameters, sources[0].secrets)


def read_target(path: str) -> WebhookTarget | None:
    """By hand: six Starlette routes would be needed, for one to three parts with or without /."""
    parts = path.removeprefix(PREFIX).removesuffix("/").split("/")
    return WebhookTarget(*parts) if all(parts) and len(parts) <= 3 else None


def check_all(
    sources: tuple[IndexedSource, ...], signed: Signed, now: datetime
) -> tuple[IndexedSource, SignatureVerdict]:
    """The first source that accepts the signature; all are tried, so that the time is the same."""
    verdicts = [
        (
            source,
            check_signature(
                source.provider, signed, source.secrets, now, allow_unsigned=source.allow_unsigned
            ),
        )
        for source in sources
    ]
    stale = [pair for pair in verdicts if pair[1].signer is not None]
    accepting = [pair for pair in verdicts if pair[1].accepted]
    return (accepting or stale or verdicts)[0]
