"""Receives webhooks in front of Django, which would read a whole body before any check.

The order is fixed: size while the body is read, signature, age, one commit, the response.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from agents_app.webhooks import IndexedSource, RefusalReason, RefusedRequest, SourceIndex
from agents_app.webhooks.providers import UNSIGNED, RawDelivery, Signed
from gateway_app.access import WEBHOOK_LIMIT, RateLimit, client_of
from gateway_app.asgi import (
    MEGABYTE,
    Body,
    BodyBudget,
    BodyError,
    GatewayResponse,
    body_error_response,
    read_headers,
)
from gateway_app.webhooks.examine import Examined, body_limit, examine, provider_of
from gateway_app.webhooks.intake import Intake, Unavailable
from gateway_app.webhooks.origin import is_foreign
from gateway_app.webhooks.responses import (
    accepted,
    foreign_origin,
    method_not_allowed,
    no_such_address,
    refused,
    too_many,
    too_many_wrong_signatures,
    unavailable,
)
from gateway_app.webhooks.source_cache import SourceCache

PREFIX = "/webhooks/"
# Two of the largest bodies of one client at the same time, and 128 of 128 kB.
LARGE_BYTES, SMALL_BYTES = 128 * MEGABYTE, 32 * MEGABYTE
# Hashing or parsing more bytes than this would block all other connections of the event loop.
LARGE_BODY_BYTES, LARGE_JSON_BYTES = 256 * 1024, 16 * 1024
LONGEST_QUERY_BYTES = 2000
THREADS = 4
MOST_SENDERS = 10_000


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """/webhooks/<provider>[/<source>[/<secret>]]"""

    kind: str
    source: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    """A request with its body, and the sources of its address in the index."""

    index: SourceIndex
    target: WebhookTarget
    sources: tuple[IndexedSource, ...]
    signed: Signed
    address: str
    received_at: datetime


class Webhooks:
    """The ASGI application of all paths below /webhooks/."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        body_seconds: float,
        budget: BodyBudget | None = None,
        limit: RateLimit = WEBHOOK_LIMIT,
    ) -> None:
        self.clock = clock
        self.body_seconds = body_seconds
        self.budget = budget or BodyBudget(LARGE_BYTES, SMALL_BYTES)
        self.limit = limit
        # By address, of requests with a wrong signature: each costs as much as a valid one.
        self.wrong_signatures = RateLimit(rate=2, burst=100)
        # Addresses with a valid signature, and the provider.
        self._senders: set[tuple[str, str]] = set()
        self._threads = ThreadPoolExecutor(THREADS, "webhooks")
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
        if target is None:
            return no_such_address()
        try:
            index = await self.sources.current()
            sources = index.find(target.kind, target.source)
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
        headers, client = read_headers(scope), client_of(scope)
        if wait := self._wait_of_address(client, target):
            self.intake.refuse(target.kind, (), "rate_limited")
            return too_many_wrong_signatures(wait, unread=True)
        body = Body(receive, body_limit(target.kind, sources), self.budget, client)
        try:
            content = await body.read(headers.get("content-length", ""), self.body_seconds)
            signed = Signed(headers, content, target.secret)
            return await self._check(
                ReceivedWebhook(index, target, sources, signed, client, self.clock())
            )
        finally:
            body.close()

    async def _check(self, webhook: ReceivedWebhook) -> GatewayResponse:
        found = await self._examine(webhook)
        source, verdict = found.source, found.verdict
        if source is None or verdict.problem:
            self._refuse(webhook, verdict.problem or "bad_signature", webhook.sources)
            if wait := self.wrong_signatures.wait_seconds(webhook.address, time.monotonic()):
                return too_many_wrong_signatures(wait, unread=False)
            return refused(stale=verdict.problem == "stale")
        self._remember_sender(webhook, source)
        if source.allow_unsigned and is_foreign(webhook.signed.headers):
            self._refuse(webhook, "foreign_origin", (source,))
            return foreign_origin()
        if wait := self._wait_seconds(source, verdict.signer or ""):
            self._refuse(webhook, "rate_limited", (source,))
            return too_many(wait)
        return await self._store(webhook, found, source)

    async def _examine(self, webhook: ReceivedWebhook) -> Examined:
        arguments = (webhook.index, webhook.target.kind, webhook.sources, webhook.signed)
        if not needs_thread(webhook):
            return examine(*arguments, webhook.received_at)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, examine, *arguments, webhook.received_at)

    def _wait_of_address(self, client: str, target: WebhookTarget) -> int:
        """The seconds for which nothing is read from an address with many wrong signatures.

        A request that names its source costs little and is always verified, as is one from an
        address whose signature was valid before: others may use the same address."""
        if target.source or (client, target.kind) in self._senders:
            return 0
        return self.wrong_signatures.peek_seconds(client, time.monotonic())

    def _remember_sender(self, webhook: ReceivedWebhook, source: IndexedSource) -> None:
        if webhook.target.source or source.allow_unsigned:
            return
        if len(self._senders) >= MOST_SENDERS:
            self._senders.clear()
        self._senders.add((webhook.address, webhook.target.kind))

    def _wait_seconds(self, source: IndexedSource, signer: str) -> int:
        """A provider that does not send again would lose a delivery: it has no limit."""
        if not source.provider.sends_again and signer != UNSIGNED:
            return 0
        return self.limit.wait_seconds(str(source.id), time.monotonic())

    async def _store(
        self, webhook: ReceivedWebhook, found: Examined, source: IndexedSource
    ) -> GatewayResponse:
        if found.answer:
            return GatewayResponse(found.answer)
        signed = webhook.signed
        raw = RawDelivery(signed.headers, signed.body, found.delivery_id, webhook.received_at)
        signer = found.verdict.signer or ""
        return accepted(await self.intake.store(webhook.index, source, raw, signer))

    def _refuse(
        self,
        webhook: ReceivedWebhook,
        reason: RefusalReason,
        sources: tuple[IndexedSource, ...],
    ) -> None:
        signed = webhook.signed
        self.intake.refuse(
            webhook.target.kind,
            [
                RefusedRequest(
                    source=source,
                    reason=reason,
                    address=webhook.address,
                    received_at=webhook.received_at,
                    headers=signed.headers,
                    size=len(signed.body),
                )
                for source in sources
            ],
            reason,
        )


def needs_thread(webhook: ReceivedWebhook) -> bool:
    """Whether the check takes long: a large body, a body without a signature that may be parsed, or
    the secrets of several sources."""
    sources, parses = webhook.sources, provider_of(webhook.target.kind).parses_early
    return (
        len(webhook.signed.body) > (LARGE_JSON_BYTES if parses else LARGE_BODY_BYTES)
        or len(sources) > 1
        or (parses and any(source.allow_unsigned for source in sources))
    )


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
    usable = all(parts) and len(parts) <= 3 and path.isprintable()
    return WebhookTarget(*parts) if usable else None
