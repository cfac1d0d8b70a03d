"""The system duty that sends notices to targets: in order, at least once, for at most a day.

All targets are called at the same time, each for at most one round, so that a target that is
slow or down delays neither other targets nor other duties.
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
from agents_app.models import NotifyTarget
from agents_app.notifications.outgoing import post
from agents_app.notifications.payloads import Notice, build_body, build_headers
from agents_app.notifications.targets import (
    MAX_NOTICES,
    events_for,
    pending_notices,
    target_label,
    target_url,
)
from agents_app.secrets import read_secret

log = structlog.get_logger("drover.notify")
ROUND_SECONDS = 20.0
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 10, 600
GIVE_UP_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PendingNotifications:
    """What is sent to a target in one round, read before the first call."""

    target: NotifyTarget
    notices: Sequence[Notice]
    settled: int
    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class SendResult:
    """The last event that was sent, and the error for which the next one was not."""

    cursor: int
    error: str = ""


def notify(now: datetime) -> None:
    """Send the pending notices of all targets; called by beat."""
    due = NotifyTarget.objects.filter(Q(next_try_at__isnull=True) | Q(next_try_at__lte=now))
    enabled = due.filter(tenant__disabled_at__isnull=True)
    targets = list(enabled.select_related("tenant").order_by("pk"))
    if not targets:
        return
    after = min(target.cursor for target in targets)
    settled = ENGINE.newest_settled_id("drover_run_event", after, now)
    pending = [_read_pending(target, settled) for target in targets if target.cursor < settled]
    for batch, result in zip(pending, asyncio.run(_send_all(pending, now)), strict=True):
        _record_result(batch, result, now)


def _read_pending(target: NotifyTarget, settled: int) -> PendingNotifications:
    notices = pending_notices(target, settled)
    secret = read_secret(target.secret_ref, target.tenant) if target.secret_ref else ""
    return PendingNotifications(target, notices, settled, target_url(target), secret)


# --- sending --------------------------------------------------------------------------------


async def _send_all(pending: Sequence[PendingNotifications], now: datetime) -> list[SendResult]:
    return await asyncio.gather(*(_send_batch(batch, now) for batch in pending))


async def _send_batch(batch: PendingNotifications, now: datetime) -> SendResult:
    """Send one notice after the other, so that they arrive in order."""
    done = batch.target.cursor
    give_up_at = asyncio.get_running_loop().time() + ROUND_SECONDS
    for notice in batch.notices:
        if asyncio.get_running_loop().time() > give_up_at:
            return SendResult(done)
        if error := await _send_notice(batch, notice, now):
            return SendResult(done, error)
        done = notice.id
    # Fewer than the limit: no other event up to `settled` is of interest to the target.
    return SendResult(batch.settled if len(batch.notices) < MAX_NOTICES else done)


async def _send_notice(batch: PendingNotifications, notice: Notice, now: datetime) -> str:
    """Send one notice; returns the error, or an empty text."""
    if not batch.url:
        return "the secret that its url refers to does not exist or is empty"
    if batch.target.secret_ref and not batch.secret:
        return f"its secret {batch.target.secret_ref} does not exist or is empty"
    body = build_body(notice, batch.target.format)
    headers = build_headers(notice, body, batch.secret, now)
    try:
        reply = await post(batch.url, body, headers, CONF.outgoing_hosts)
    except DroverError as error:
        return str(error)
    return "" if 200 <= reply.status < 300 else f"it answered with status {reply.status}"


# --- recording the result -------------------------------------------------------------------


def _record_result(batch: PendingNotifications, result: SendResult, now: datetime) -> None:
    target = batch.target
    if not result.error:
        columns: Mapping[str, object] = {
            "cursor": result.cursor,
            "failing_since": None,
            "failures": 0,
            "next_try_at": None,
            "last_error": "",
        }
        in_transaction(lambda: _row(target).update(**columns))
        return
    wait = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(target.failures, 10))
    log.warning(
        "notify.failed", target=target_label(target), error=result.error, retry_seconds=wait
    )
    columns = {
        "failing_since": target.failing_since or now,
        "failures": target.failures + 1,
        "next_try_at": now + timedelta(seconds=wait),
        "last_error": result.error[:500],
    }
    in_transaction(lambda: _record_failure(batch, result, columns, now))


def _record_failure(
    batch: PendingNotifications, result: SendResult, columns: Mapping[str, object], now: datetime
) -> None:
    """Store the failure; notices that are too old are given up together, with a journal entry."""
    target = batch.target
    waiting = events_for(target).filter(pk__gt=result.cursor, pk__lte=batch.settled)
    old = waiting.filter(at__lt=now - GIVE_UP_AFTER).order_by("pk")
    given_up = list(old.values_list("pk", flat=True))
    cursor = max([result.cursor, *given_up])
    _row(target).update(**columns, cursor=cursor)
    if given_up:
        detail = f"{target_label(target)} did not receive {len(given_up)} notices: {result.error}"
        journal.record(
            journal.JournalEntry("notify.given_up", now, target.tenant_id, detail=detail)
        )


def _row(target: NotifyTarget) -> "QuerySet[NotifyTarget]":
    return NotifyTarget.objects.filter(pk=target.pk)
