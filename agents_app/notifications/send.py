"""Tells those who asked what happened to runs: in order, at least once, and not for ever.

All targets are called at the same time and nobody waits longer than a round, so that a target that
is dead or slow holds up neither the others nor any other duty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db.models import Q, QuerySet

from agents_app.conf import CONF
from agents_app.database import ENGINE, in_transaction
from agents_app.errors import DroverError
from agents_app.events import journal
from agents_app.models import NotifyTarget, RunEvent
from agents_app.notifications.outgoing import post
from agents_app.notifications.payloads import Notice, body_of, headers_of
from agents_app.notifications.targets import MOST_AT_ONCE, shown, url_of, waiting_for
from agents_app.secrets import read_secret

log = structlog.get_logger("drover.notify")
ROUND_SECONDS = 20.0
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 10, 600
GIVE_UP_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PendingNotifications:
    """All that a round needs to know of a target, read before any call is made."""

    target: NotifyTarget
    notices: Sequence[Notice]
    settled: int
    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class SendResult:
    """How far it went; `error` is why not further."""

    cursor: int
    error: str = ""


def notify(now: datetime) -> None:
    due = NotifyTarget.objects.filter(Q(next_try_at__isnull=True) | Q(next_try_at__lte=now))
    targets = list(due.filter(tenant__disabled_at__isnull=True).order_by("pk"))
    if not targets:
        return
    after = min(target.cursor for target in targets)
    settled = ENGINE.newest_settled_id("drover_run_event", after, now)
    errands = [_errand(target, settled) for target in targets if target.cursor < settled]
    for errand, told in zip(errands, asyncio.run(_run_all(errands, now)), strict=True):
        _write(errand, told, now)


def _errand(target: NotifyTarget, settled: int) -> PendingNotifications:
    notices = waiting_for(target, settled)
    secret = read_secret(target.secret_ref) if target.secret_ref else ""
    return PendingNotifications(target, notices, settled, url_of(target), secret)


# --- calling --------------------------------------------------------------------------------


async def _run_all(errands: Sequence[PendingNotifications], now: datetime) -> list[SendResult]:
    return await asyncio.gather(*(_run(errand, now) for errand in errands))


async def _run(errand: PendingNotifications, now: datetime) -> SendResult:
    """One letter after the other, so that they arrive in order."""
    done = errand.target.cursor
    give_up_at = asyncio.get_running_loop().time() + ROUND_SECONDS
    for notice in errand.notices:
        if asyncio.get_running_loop().time() > give_up_at:
            return SendResult(done)
        if error := await _tell(errand, notice, now):
            return SendResult(done, error)
        done = notice.id
    # Fewer than there is room for: whatever else is settled does not concern the target.
    return SendResult(errand.settled if len(errand.notices) < MOST_AT_ONCE else done)


async def _tell(errand: PendingNotifications, notice: Notice, now: datetime) -> str:
    """Why it did not arrive, or nothing."""
    if not errand.url:
        return "its url is kept elsewhere, and is not there or empty"
    if errand.target.secret_ref and not errand.secret:
        return f"its secret {errand.target.secret_ref} is not there or empty"
    body = body_of(notice, errand.target.format)
    headers = headers_of(notice, body, errand.secret, now)
    try:
        reply = await post(errand.url, body, headers, CONF.outgoing_hosts)
    except DroverError as error:
        return str(error)
    return "" if 200 <= reply.status < 300 else f"it answered with status {reply.status}"


# --- writing down ---------------------------------------------------------------------------


def _write(errand: PendingNotifications, told: SendResult, now: datetime) -> None:
    target = errand.target
    if not told.error:
        columns: Mapping[str, object] = {
            "cursor": told.cursor,
            "failing_since": None,
            "failures": 0,
            "next_try_at": None,
            "last_error": "",
        }
        in_transaction(lambda: _row(target).update(**columns))
        return
    wait = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(target.failures, 10))
    log.warning("notify.failed", target=shown(target), error=told.error, retry_seconds=wait)
    columns = {
        "failing_since": target.failing_since or now,
        "failures": target.failures + 1,
        "next_try_at": now + timedelta(seconds=wait),
        "last_error": told.error[:500],
    }
    in_transaction(lambda: _failed(errand, told, columns, now))


def _failed(
    errand: PendingNotifications, told: SendResult, columns: Mapping[str, object], now: datetime
) -> None:
    """What has been waiting for too long is given up, all of it at once, and noted."""
    target = errand.target
    waiting = RunEvent.objects.filter(
        tenant_id=target.tenant_id, name__in=target.events, pk__gt=told.cursor
    )
    old = waiting.filter(pk__lte=errand.settled, at__lt=now - GIVE_UP_AFTER).order_by("pk")
    given_up = list(old.values_list("pk", flat=True))
    cursor = max([told.cursor, *given_up])
    _row(target).update(**columns, cursor=cursor)
    if given_up:
        detail = f"{shown(target)} was not told of {len(given_up)} events: {told.error}"
        journal.record(
            journal.JournalEntry("notify.given_up", now, target.tenant_id, detail=detail)
        )


def _row(target: NotifyTarget) -> "QuerySet[NotifyTarget]":
    return NotifyTarget.objects.filter(pk=target.pk)
