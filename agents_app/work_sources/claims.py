"""Rows of work sources and claims: a claim is written before the other system is changed.

    claiming --> claimed --> ended
        `------------------> ended   (another Drover was first, or the claim was interrupted)

A claim that a dead process left behind is released by the next process that serves its source.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

from django.db import IntegrityError
from django.db.models import Max, Q, QuerySet

from agents_app.database import in_transaction
from agents_app.events import journal
from agents_app.models import Delivery, Firing, Schedule, WorkClaim, WorkItem, WorkSource
from agents_app.schedules import firings
from agents_app.work_sources.kinds import Candidate, ClaimMark, WorkSourceError, read_settings

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 10, 600
UNFINISHED = (WorkItem.State.QUEUED, WorkItem.State.ADMITTED)
S, Ended = WorkClaim.Stage, WorkClaim.Outcome


# --- sources --------------------------------------------------------------------------------


def has_polling_firings() -> bool:
    return polling_firings().exists()


def polling_firings() -> QuerySet[Firing]:
    return Firing.objects.filter(outcome=Firing.Outcome.POLLING).order_by("id")


def settings_of(schedule: Schedule) -> dict[str, Any] | None:
    """The work source of a schedule: its own, or that of its agent."""
    found: dict[str, Any] | None = schedule.work_source
    return schedule.agent.work_source if found is None else found


def fingerprint(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def source_row(tenant_id: int, settings: dict[str, Any]) -> WorkSource:
    """The row of a source; committed if it is new."""
    known = WorkSource.objects.filter(tenant=tenant_id, fingerprint=fingerprint(settings)).first()
    if known is not None:
        return known
    kind, read = read_settings(settings)
    newest = Delivery.objects.aggregate(last=Max("pk"))["last"] or 0
    columns = {
        "type": settings["type"],
        "name": kind.name(read)[:1000],
        "settings": settings,
        # Older deliveries do not wake the source.
        "delivery_cursor": newest,
    }
    return in_transaction(
        lambda: WorkSource.objects.get_or_create(
            tenant_id=tenant_id, fingerprint=fingerprint(settings), defaults=columns
        )[0]
    )


def update_source(source: WorkSource, **columns: Any) -> None:
    in_transaction(lambda: WorkSource.objects.filter(pk=source.pk).update(**columns))


# --- claims ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    source: WorkSource
    # The repository or directory with its server.
    place: str
    agent_id: int
    firing_id: int


def begin_claim(
    request: ClaimRequest, item: Candidate, ready_at: datetime, now: datetime
) -> WorkClaim | None:
    """Commit a claim before the other system is changed; None if the item has an open claim."""
    key = hashlib.sha256(f"{request.place}\n{item.id}".encode()).hexdigest()
    source = request.source
    last = WorkClaim.objects.filter(tenant=source.tenant_id, item_key=key).order_by("-id").first()
    repeated = last is not None and last.outcome == Ended.RELEASED
    claim = WorkClaim(
        tenant_id=source.tenant_id,
        source=source,
        agent_id=request.agent_id,
        firing_id=request.firing_id,
        item_id=item.id[:300],
        item_key=key,
        title=_printable(item.title)[:500],
        url=_printable(item.url)[:2000],
        token=uuid4().hex,
        ready_at=ready_at,
        created_at=now,
        failed_attempts=last.failed_attempts if last and repeated else 0,
    )
    try:
        in_transaction(claim.save)
    except IntegrityError:
        return None
    return claim


def _printable(text: str) -> str:
    return "".join(char for char in text if char.isprintable())


def start_claim(claim: WorkClaim, context: str, now: datetime) -> WorkItem | None:
    """Commit the work item of a claim together with the outcome of its firing; locks the agent.

    None: the firing was skipped meanwhile. Raises Refused if the agent refuses work.
    """
    firing_id = claim.firing_id
    assert firing_id is not None

    def change() -> WorkItem | None:
        item = firings.start_polled(firing_id, context, now)
        if item is None:
            return None
        moved = _rows(claim, S.CLAIMING).update(stage=S.CLAIMED, work_item=item, last_error="")
        if not moved:
            raise WorkSourceError("another process has ended the claim")
        _record("claim.started", claim, now, f"{claim.source}: {claim.title}, work item {item.pk}")
        return item

    return in_transaction(change)


def end_claim(
    claim: WorkClaim, outcome: str, now: datetime, error: str = "", *, failed: bool = False
) -> None:
    columns = {
        "stage": S.ENDED,
        "outcome": outcome,
        "ended_at": now,
        "last_error": error[:500],
        "failed_attempts": claim.failed_attempts + failed,
    }

    def change() -> None:
        open_row = WorkClaim.objects.filter(pk=claim.pk).exclude(stage=S.ENDED)
        if open_row.update(**columns) and outcome != Ended.NOT_CLAIMED:
            _record("claim.ended", claim, now, f"{claim.source}: {claim.title}, {outcome}")

    in_transaction(change)


def begin_try(claim: WorkClaim, now: datetime) -> None:
    """Commit that a report is sent: after a crash the next attempt looks for it first."""
    wait = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS << min(claim.tries, 10))
    columns = {"tries": claim.tries + 1, "next_try_at": now + timedelta(seconds=wait)}
    in_transaction(lambda: WorkClaim.objects.filter(pk=claim.pk).update(**columns))


def postpone(claim: WorkClaim, error: WorkSourceError, now: datetime) -> None:
    columns: dict[str, Any] = {"last_error": str(error)[:500]}
    if error.retry_at is not None and error.retry_at > now:
        columns["next_try_at"] = error.retry_at
    in_transaction(lambda: WorkClaim.objects.filter(pk=claim.pk).update(**columns))


def claims_to_end(now: datetime) -> QuerySet[WorkClaim]:
    """Claims without unfinished work: interrupted ones, and those whose work has ended."""
    due = WorkClaim.objects.filter(Q(next_try_at__isnull=True) | Q(next_try_at__lte=now))
    unstarted = Q(stage=S.CLAIMING)
    settled = Q(stage=S.CLAIMED) & ~Q(work_item__state__in=UNFINISHED)
    found = due.filter(unstarted | settled).exclude(stage=S.ENDED)
    return found.select_related("source", "agent", "work_item").order_by("id")


def mark_of(claim: WorkClaim, *, again: bool = False) -> ClaimMark:
    text = f"The Drover agent `{claim.agent.name}` works on this."
    return ClaimMark(token=claim.token, since=claim.ready_at, text=text, again=again)


def sources_with_work(now: datetime) -> set[int]:
    """The sources that have to be served; commits rows of new sources.

    A firing whose work source was removed from the file is skipped.
    """
    found = set(claims_to_end(now).values_list("source_id", flat=True))
    polling = polling_firings().select_related("schedule__agent")
    return found | {row.pk for row in _sources_of(polling, now)}


def _sources_of(polling: Iterable[Firing], now: datetime) -> Iterable[WorkSource]:
    for firing in polling:
        settings = settings_of(firing.schedule)
        if settings is not None:
            yield source_row(firing.tenant_id, settings)
        else:
            skip = partial(firings.skip_polled, firing.pk, Firing.Reason.NO_WORK, now)
            in_transaction(skip)


def _rows(claim: WorkClaim, stage: str) -> QuerySet[WorkClaim]:
    return WorkClaim.objects.filter(pk=claim.pk, stage=stage)


def _record(name: str, claim: WorkClaim, now: datetime, detail: str) -> None:
    entry = journal.JournalEntry(name, now, claim.tenant_id, claim.agent_id, detail=detail)
    journal.record(entry)
