"""Locks of agents on resources outside Drover: one holder per URI, with an expiry time and a queue.

A lock's row is deleted when the lock ends and never given to another holder, so its primary key
is the fencing token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from agents_app.database import ENGINE, in_transaction
from agents_app.errors import DroverError, NotFound
from agents_app.models import LockWait, ResourceLock, Run, Tenant
from agents_app.signals.lock_uris import uri_problem

DEFAULT_TTL_SECONDS = 1800.0
MAX_TTL_SECONDS = 30 * 86_400.0
# A waiting run asks at least once a second.
LEFT_QUEUE_AFTER = timedelta(seconds=5)
# An old refusal does not show what its holder waits for now.
WAIT_EXPIRES_AFTER = timedelta(hours=2)
# The class of numbers in the database's locks that serialise the locks of a tenant.
_ADVISORY_CLASS = 0x10C5


@dataclass(frozen=True, slots=True)
class Holder:
    """The owner of a lock: for a run, the name of its agent and its id."""

    tenant_id: int
    name: str
    run_id: int | None = None


def holder_of(run: Run) -> Holder:
    return Holder(run.tenant_id, f"{run.agent.name}-{run.pk}", run.pk)


class LockRefused(DroverError):
    """Another holder has the lock; `more` names the holder or the deadlock."""

    code = "locked"
    http_status = 409

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message)
        self.more = {"ok": False, **more}


class BadUri(LockRefused):
    code = "bad_uri"
    http_status = 400


class NotHeld(LockRefused, NotFound):
    code = "not_found"
    http_status = 404


# --- acquire, renew, release ----------------------------------------------------------------


def acquire(
    holder: Holder, uri: str, now: datetime, ttl: float | None = None, *, queued: bool = False
) -> ResourceLock:
    """Acquire or renew a lock in a transaction of its own; raises LockRefused."""
    outcome = in_transaction(lambda: try_to_acquire(holder, uri, now, ttl, queued=queued))
    # Raised after the commit, because the row that records the refusal must stay.
    if isinstance(outcome, LockRefused):
        raise outcome
    return outcome


def try_to_acquire(
    holder: Holder, uri: str, now: datetime, ttl: float | None = None, *, queued: bool = False
) -> ResourceLock | LockRefused:
    """Acquire a lock, or renew one that the holder has. In the caller's transaction.

    `queued`: the holder will ask again and keeps its place in the queue. A refusal is returned,
    not raised, so that the caller commits the row that records it."""
    _check_uri(uri)
    _serialise(holder.tenant_id)
    lock = _current_lock(holder.tenant_id, uri, now)
    if lock is not None and lock.holder == holder.name:
        return _renew(lock, now, ttl)
    if lock is not None:
        return _refuse(holder, lock, now, queued=queued)
    first = _first_in_queue(holder.tenant_id, uri, now)
    if first is not None and first.holder != holder.name:
        _record_wait(holder, uri, now, queued=queued)
        return LockRefused(f"{first.holder} is first in line for {uri}", holder=first.holder)
    return _grant(holder, uri, now, ttl)


def heartbeat(holder: Holder, uri: str, now: datetime, ttl: float | None = None) -> ResourceLock:
    _check_uri(uri)
    return in_transaction(lambda: _renew(_held_by(holder, uri, now), now, ttl))


def release(holder: Holder, uri: str, now: datetime) -> None:
    """Release a lock. An expired lock cannot be released: another holder may have it by now."""
    _check_uri(uri)
    in_transaction(lambda: _held_by(holder, uri, now).delete())


def leave_queue(holder: Holder, uri: str) -> None:
    """Give up the holder's place in the queue; the recorded refusal stays."""
    in_transaction(lambda: _waits_of(holder).filter(uri=uri).update(in_line=False))


def held_locks(tenant_id: int, now: datetime) -> "QuerySet[ResourceLock]":
    return ResourceLock.objects.filter(tenant=tenant_id, expires_at__gt=now).order_by("pk")


def delete_expired(now: datetime) -> int:
    """Delete expired locks and old refusals; returns how many rows. Called by the sweep."""
    expired = ResourceLock.objects.filter(expires_at__lte=now)
    old = LockWait.objects.filter(asked_at__lte=now - WAIT_EXPIRES_AFTER)
    if not (expired.exists() or old.exists()):
        return 0
    return in_transaction(lambda: expired.delete()[0] + old.delete()[0])


# --- rows -----------------------------------------------------------------------------------


def _check_uri(uri: str) -> None:
    if problem := uri_problem(uri):
        raise BadUri(problem, reason=problem)


def _grant(holder: Holder, uri: str, now: datetime, ttl: float | None) -> ResourceLock:
    _waits_of(holder).delete()
    seconds = _ttl_seconds(holder.tenant_id, ttl)
    return ResourceLock.objects.create(
        tenant_id=holder.tenant_id,
        uri=uri,
        holder=holder.name,
        run_id=holder.run_id,
        held_since=now,
        ttl_seconds=seconds,
        expires_at=now + timedelta(seconds=seconds),
    )


def _refuse(holder: Holder, lock: ResourceLock, now: datetime, *, queued: bool) -> LockRefused:
    if cycle := _deadlock(holder, lock.uri, now):
        _waits_of(holder).delete()
        reason = f"possible deadlock: {' → '.join([*cycle, holder.name])}"
        return LockRefused(reason, reason=reason, deadlock=True, cycle=cycle)
    _record_wait(holder, lock.uri, now, queued=queued)
    since = lock.held_since.timestamp()
    return LockRefused(
        f"{lock.holder} holds {lock.uri}", holder=lock.holder, heldSince=as_json_number(since)
    )


def _deadlock(holder: Holder, uri: str, now: datetime) -> list[str] | None:
    holders = dict(held_locks(holder.tenant_id, now).values_list("uri", "holder"))
    waits = LockWait.objects.filter(
        tenant=holder.tenant_id, asked_at__gt=now - WAIT_EXPIRES_AFTER
    ).order_by("asked_at", "pk")
    return find_cycle(holder.name, uri, holders, dict(waits.values_list("holder", "uri")))


def find_cycle(
    asker: str, uri: str, holders: Mapping[str, str], waits: Mapping[str, str]
) -> list[str] | None:
    """The chain from the asker over the holder of `uri` and the lock that this holder waits for,
    and so on, if the chain leads back to the asker; else None.

    `holders` maps a URI to its holder, `waits` a holder to the URI it was last refused."""
    path, seen = [asker], {asker}
    while (holder := holders.get(uri)) is not None:
        path.append(uri)
        if holder == asker:
            return path
        if holder in seen or holder not in waits:
            return None
        path.append(holder)
        seen.add(holder)
        uri = waits[holder]
    return None


def _record_wait(holder: Holder, uri: str, now: datetime, *, queued: bool) -> None:
    """Record that the holder was refused `uri`. A holder waits for one lock at a time, so earlier
    refusals of other locks are deleted."""
    _waits_of(holder).exclude(uri=uri).delete()
    known = _waits_of(holder).filter(uri=uri).first()
    if known is None:
        LockWait.objects.create(
            tenant_id=holder.tenant_id,
            uri=uri,
            holder=holder.name,
            run_id=holder.run_id,
            since=now,
            asked_at=now,
            in_line=queued,
        )
        return
    # A holder that had left the queue joins it at the end.
    stayed = known.in_line and known.asked_at > now - LEFT_QUEUE_AFTER
    since = known.since if stayed or not queued else now
    LockWait.objects.filter(pk=known.pk).update(asked_at=now, since=since, in_line=queued)


def _first_in_queue(tenant_id: int, uri: str, now: datetime) -> LockWait | None:
    present = LockWait.objects.filter(
        tenant=tenant_id, uri=uri, in_line=True, asked_at__gt=now - LEFT_QUEUE_AFTER
    )
    return present.order_by("since", "pk").first()


def _current_lock(tenant_id: int, uri: str, now: datetime) -> ResourceLock | None:
    """The lock on `uri`, locked for update. An expired one is deleted, so that the next holder
    gets a row, and therefore a fencing token, of its own."""
    locks = ResourceLock.objects.filter(tenant=tenant_id, uri=uri)
    lock = locks.select_for_update().first()
    if lock is not None and lock.expires_at <= now:
        lock.delete()
        return None
    return lock


def _held_by(holder: Holder, uri: str, now: datetime) -> ResourceLock:
    _serialise(holder.tenant_id)
    lock = _current_lock(holder.tenant_id, uri, now)
    if lock is None:
        raise NotHeld(f"no run holds {uri}", reason="lock not found")
    if lock.holder != holder.name:
        raise LockRefused(
            f"{lock.holder} holds {uri}", reason="lock held by another", holder=lock.holder
        )
    return lock


def _renew(lock: ResourceLock, now: datetime, ttl: float | None) -> ResourceLock:
    seconds = lock.ttl_seconds if ttl is None else _ttl_seconds(lock.tenant_id, ttl)
    lock.ttl_seconds, lock.expires_at = seconds, now + timedelta(seconds=seconds)
    lock.save(update_fields=["ttl_seconds", "expires_at"])
    return lock


def _ttl_seconds(tenant_id: int, ttl: float | None) -> float:
    if ttl is not None:
        return min(ttl, MAX_TTL_SECONDS)
    settings = Tenant.objects.values_list("settings", flat=True).get(pk=tenant_id)
    return float(settings.get("resource_lock_timeout_seconds", DEFAULT_TTL_SECONDS))


def _waits_of(holder: Holder) -> "QuerySet[LockWait]":
    return LockWait.objects.filter(tenant=holder.tenant_id, holder=holder.name)


def _serialise(tenant_id: int) -> None:
    """One transaction at a time per tenant: of two holders that are refused at the same moment
    neither would see the other's row, and with it the deadlock of both."""
    ENGINE.lock_number(_ADVISORY_CLASS, tenant_id % 2**31)


def as_json_number(seconds: float) -> float:
    return int(seconds) if seconds.is_integer() else seconds
