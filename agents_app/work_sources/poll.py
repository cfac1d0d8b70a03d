"""Serves one work source: reports ended claims, then claims an item for each firing that polls.

Requests are made outside of transactions and not on the thread of beat: a slow source delays only
its own firings.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from agents_app.database import in_transaction
from agents_app.errors import DroverError, Refused
from agents_app.models import Firing, Scheduler, WorkClaim, WorkSource
from agents_app.runs import find_blocks
from agents_app.schedules import firings
from agents_app.work_sources import claims
from agents_app.work_sources.client import open_client
from agents_app.work_sources.kinds import (
    Candidate,
    ClaimResult,
    FetchOptions,
    SourceClient,
    WorkSourceError,
    by_priority,
    read_settings,
)
from agents_app.work_sources.lease import SourceLease
from agents_app.work_sources.report import report_claim
from agents_app.work_sources.texts import item_context
from agents_app.worker import utc_now

log = structlog.get_logger("drover.work_sources")
ITEMS_IN_ONE_PAGE, MOST_PAGES = 100, 5
# After so many items that could not be claimed for an error, the source is left alone.
MOST_ERRORS = 3
# Of code that reads an answer of another system.
UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError)
ERRORS = ("source_error", "permission_denied")
Clock = Callable[[], datetime]
R, Ended = Firing.Reason, WorkClaim.Outcome


@dataclass(frozen=True, slots=True)
class SourceService:
    """A source that this process serves now."""

    source: WorkSource
    client: SourceClient
    clock: Clock

    @property
    def place(self) -> str:
        kind, settings = read_settings(self.source.settings)
        return f"{self.source.type}:{kind.place(settings)}"


def serve_source(
    source_id: int, clock: Clock = utc_now, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Report and poll, unless another process does so."""
    lease = SourceLease(source_id, clock)
    if not lease.take():
        return
    try:
        _serve(WorkSource.objects.select_related("tenant").get(pk=source_id), lease, sleep)
    finally:
        lease.give_back()


def _serve(source: WorkSource, lease: SourceLease, sleep: Callable[[float], None]) -> None:
    clock = lease.clock
    if source.blocked_until is not None and source.blocked_until > clock():
        _skip_all(source, clock())
        return
    try:
        client = open_client(source, clock, sleep, lease.renew)
        service = SourceService(source, client, clock)
        for claim in claims.claims_to_end(clock()).filter(source=source):
            report_claim(client, claim, clock())
        _poll(service)
    except DroverError as error:
        _fail(source, error, clock())
    except UNEXPECTED as error:
        log.exception("work_source.crashed", source=str(source))
        message = f"the source gave an answer that Drover does not understand: {error!r}"
        _fail(source, WorkSourceError(message), clock())


def _fail(source: WorkSource, error: DroverError, now: datetime) -> None:
    """Store the error, and skip the firings that wait for the source."""
    log.warning("work_source.failed", source=str(source), error=str(error))
    claims.update_source(
        source,
        failures=source.failures + 1,
        last_error=str(error)[:500],
        blocked_until=error.retry_at if isinstance(error, WorkSourceError) else None,
    )
    _skip_all(source, now)


def _skip_all(source: WorkSource, now: datetime) -> None:
    for firing in _firings_of(source):
        _skip(firing, R.SOURCE_FAILED, now)


# --- polling --------------------------------------------------------------------------------


def _firings_of(source: WorkSource) -> list[Firing]:
    polling = claims.polling_firings().filter(tenant=source.tenant_id)
    joined = polling.select_related("schedule__agent__tenant")
    return [
        firing
        for firing in joined
        if (settings := claims.settings_of(firing.schedule)) is not None
        and claims.fingerprint(settings) == source.fingerprint
    ]


def _poll(service: SourceService) -> None:
    now = service.clock()
    waiting = [each for each in _firings_of(service.source) if not _skip_blocked(each, now)]
    if not waiting:
        return
    candidates, ready_at = _fetch(service)
    remaining = iter(candidates)
    for firing in waiting:
        if not _claim_one(service, firing, remaining, ready_at):
            _skip(firing, R.NO_WORK, service.clock())


def _skip_blocked(firing: Firing, now: datetime) -> bool:
    """Skip a firing whose agent has been paused or the like since the firing was decided."""
    agent = firing.schedule.agent
    blocks = find_blocks(agent, agent.tenant, Scheduler.objects.filter(pk=1).first())
    if blocks:
        _skip(firing, blocks[0].reason, now)
    return bool(blocks)


def _skip(firing: Firing, reason: str, now: datetime) -> None:
    in_transaction(lambda: firings.skip_polled(firing.pk, reason, now))


def _fetch(service: SourceService) -> tuple[list[Candidate], datetime]:
    """The candidates in the order in which they are tried, and when they were ready."""
    source = service.source
    fetched = service.client.fetch(FetchOptions(limit=ITEMS_IN_ONE_PAGE, etag=source.etag))
    # Other systems store the times of comments without fractions of a second.
    ready_at = (fetched.at or service.clock()).replace(microsecond=0)
    if fetched.unchanged:
        found = [_candidate(columns) for columns in source.queue]
        _store_poll(service, found, source.etag)
        return found, ready_at
    found, cursor = list(fetched.candidates), fetched.next_cursor
    # Only the first page has an ETag: it says nothing about others.
    etag = "" if cursor else fetched.etag[:200]
    for _ in range(MOST_PAGES - 1):
        if not cursor:
            break
        page = service.client.fetch(FetchOptions(limit=ITEMS_IN_ONE_PAGE, cursor=cursor))
        found, cursor = [*found, *page.candidates], page.next_cursor
    found = by_priority(found)
    _store_poll(service, found, etag)
    return found, ready_at


def _store_poll(service: SourceService, found: list[Candidate], etag: str) -> None:
    claims.update_source(
        service.source,
        queue=[_columns(candidate) for candidate in found],
        etag=etag,
        polled_at=service.clock(),
        blocked_until=None,
        failures=0,
        last_error="",
    )


def _columns(candidate: Candidate) -> dict[str, Any]:
    names = ("id", "title", "url", "priority", "created_at")
    columns = {name: getattr(candidate, name).replace("\0", "") for name in names}
    return columns | {"labels": [label.replace("\0", "") for label in candidate.labels]}


def _candidate(columns: dict[str, Any]) -> Candidate:
    return Candidate(**{**columns, "labels": tuple(columns["labels"])})


# --- claiming -------------------------------------------------------------------------------


def _claim_one(
    service: SourceService, firing: Firing, candidates: Iterator[Candidate], ready_at: datetime
) -> bool:
    """Claim the first candidate that can be claimed and start its work; False if there is none."""
    source, errors = service.source, 0
    agent_id = firing.schedule.agent_id
    request = claims.ClaimRequest(source, service.place, agent_id, firing.pk)
    for candidate in candidates:
        claim = claims.begin_claim(request, candidate, ready_at, service.clock())
        if claim is None:
            continue  # it has a claim already, which is being worked on or reported
        result = _attempt(service, claim)
        if result.success:
            _start(service, claim, result, firing)
            return True
        errors += result.reason in ERRORS
        if errors >= MOST_ERRORS:
            raise WorkSourceError(f"{candidate.id}: {result.message}")
    return False


def _attempt(service: SourceService, claim: WorkClaim) -> ClaimResult:
    """Claim and confirm; a claim that leaves traces stays open, and the next service undoes it."""
    try:
        result = service.client.claim(claim.item_id, claim.token)
        if result.success:
            result = service.client.confirm(claim.item_id, claims.mark_of(claim))
    except WorkSourceError as error:
        claims.postpone(claim, error, service.clock())
        raise
    if result.success:
        return result
    log.info("claim.refused", item=claim.item_id, reason=result.reason, detail=result.message)
    if result.is_marked:
        claims.postpone(claim, WorkSourceError(result.message), service.clock())
    else:
        claims.end_claim(claim, Ended.NOT_CLAIMED, service.clock(), result.message)
    return result


def _start(service: SourceService, claim: WorkClaim, result: ClaimResult, firing: Firing) -> None:
    """Enqueue the claimed item; a claim without work is released by the next service."""
    assert result.details is not None
    context = item_context(str(service.source), result.details)
    try:
        claims.start_claim(claim, context, service.clock())
    except Refused as error:
        log.info("claim.not_started", item=claim.item_id, reason=str(error))
        _skip(firing, R.DISABLED, service.clock())
