"""Locks that agents hold on things outside: one holder each, for a while, first come first served.

The holder's row is deleted with the lock and never passed on, so its number is the fence.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from agents_app.database import ENGINE, in_transaction
from agents_app.errors import DroverError, NotFound
from agents_app.models import LockWait, ResourceLock, Run, Tenant
from agents_app.signals.lock_rules import find_cycle, uri_problem

DEFAULT_TTL_SECONDS = 1800.0
LONGEST_TTL_SECONDS = 30 * 86_400.0
# Whoever is in line asks at least once a second.
LEFT_THE_LINE_AFTER = timedelta(seconds=5)
# A refusal of long ago says nothing of what its holder waits for now.
FORGOTTEN_AFTER = timedelta(hours=2)
# Among PostgreSQL's advisory locks, those on a tenant's locks.
_LOCKS = 0x10C5


@dataclass(frozen=True, slots=True)
class Holder:
    """Who asks: for a run, its agent and its number."""

    tenant_id: int
    name: str
    run_id: int | None = None


def holder_of(run: Run) -> Holder:
    return Holder(run.tenant_id, f"{run.agent.name}-{run.pk}", run.pk)


class LockRefused(DroverError):
    """The lock is somebody else's; `more` says whose, or why nobody should wait for it."""

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


# --- verbs ----------------------------------------------------------------------------------


def acquire(
    holder: Holder, uri: str, now: datetime, ttl: float | None = None, *, in_line: bool = False
) -> ResourceLock:
    """A holder that has it already keeps it for another while. `in_line`: it will ask again."""
    outcome = in_transaction(lambda: try_to_acquire(holder, uri, now, ttl, in_line=in_line))
    # Raised out here: that it was refused is a row that must stay.
    if isinstance(outcome, LockRefused):
        raise outcome
    return outcome


def try_to_acquire(
    holder: Holder, uri: str, now: datetime, ttl: float | None = None, *, in_line: bool = False
) -> ResourceLock | LockRefused:
    """In the caller's transaction; a refusal is an answer there."""
    _check(uri)
    _one_at_a_time(holder.tenant_id)
    lock = _lock_on(holder.tenant_id, uri, now)
    if lock is not None and lock.holder == holder.name:
        return _renew(lock, now, ttl)
    if lock is not None:
        return _refuse(holder, lock, now, in_line=in_line)
    first = _first_in_line(holder.tenant_id, uri, now)
    if first is not None and first.holder != holder.name:
        _wait(holder, uri, now, in_line=in_line)
        return LockRefused(f"{first.holder} is first in line for {uri}", holder=first.holder)
    return _grant(holder, uri, now, ttl)


def heartbeat(holder: Holder, uri: str, now: datetime, ttl: float | None = None) -> ResourceLock:
    _check(uri)
    return in_transaction(lambda: _renew(_held(holder, uri, now), now, ttl))


def release(holder: Holder, uri: str, now: datetime) -> None:
    """A holder whose time was over has nothing to release: the lock may be another's by now."""
    _check(uri)
    in_transaction(lambda: _held(holder, uri, now).delete())


def leave_the_line(holder: Holder, uri: str) -> None:
    """It asks no more; that it was refused is still known."""
    in_transaction(lambda: _waits_of(holder).filter(uri=uri).update(in_line=False))


def held_locks(tenant_id: int, now: datetime) -> "QuerySet[ResourceLock]":
    return ResourceLock.objects.filter(tenant=tenant_id, expires_at__gt=now).order_by("pk")


def forget_expired(now: datetime) -> int:
    """For the sweep: rows of which nobody asks any more."""
    over = ResourceLock.objects.filter(expires_at__lte=now)
    old = LockWait.objects.filter(asked_at__lte=now - FORGOTTEN_AFTER)
    if not (over.exists() or old.exists()):
        return 0
    return in_transaction(lambda: over.delete()[0] + old.delete()[0])


# --- the parts ------------------------------------------------------------------------------


def _check(uri: str) -> None:
    if problem := uri_problem(uri):
        raise BadUri(problem, reason=problem)


def _grant(holder: Holder, uri: str, now: datetime, ttl: float | None) -> ResourceLock:
    _waits_of(holder).delete()
    seconds = _ttl(holder.tenant_id, ttl)
    return ResourceLock.objects.create(
        tenant_id=holder.tenant_id,
        uri=uri,
        holder=holder.name,
        run_id=holder.run_id,
        held_since=now,
        ttl_seconds=seconds,
        expires_at=now + timedelta(seconds=seconds),
    )


def _refuse(holder: Holder, lock: ResourceLock, now: datetime, *, in_line: bool) -> LockRefused:
    if cycle := _cycle(holder, lock.uri, now):
        _waits_of(holder).delete()
        reason = f"possible deadlock: {' → '.join([*cycle, holder.name])}"
        return LockRefused(reason, reason=reason, deadlock=True, cycle=cycle)
    _wait(holder, lock.uri, now, in_line=in_line)
    since = lock.held_since.timestamp()
    return LockRefused(
        f"{lock.holder} holds {lock.uri}", holder=lock.holder, heldSince=as_number(since)
    )


def _cycle(holder: Holder, uri: str, now: datetime) -> list[str] | None:
    holders = dict(held_locks(holder.tenant_id, now).values_list("uri", "holder"))
    waits = LockWait.objects.filter(
        tenant=holder.tenant_id, asked_at__gt=now - FORGOTTEN_AFTER
    ).order_by("asked_at", "pk")
    return find_cycle(holder.name, uri, holders, dict(waits.values_list("holder", "uri")))


def _wait(holder: Holder, uri: str, now: datetime, *, in_line: bool) -> None:
    """One thing at a time: what it was refused before is not what it waits for now."""
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
            in_line=in_line,
        )
        return
    # Whoever left the line comes back to its end.
    stayed = known.in_line and known.asked_at > now - LEFT_THE_LINE_AFTER
    since = known.since if stayed or not in_line else now
    LockWait.objects.filter(pk=known.pk).update(asked_at=now, since=since, in_line=in_line)


def _first_in_line(tenant_id: int, uri: str, now: datetime) -> LockWait | None:
    present = LockWait.objects.filter(
        tenant=tenant_id, uri=uri, in_line=True, asked_at__gt=now - LEFT_THE_LINE_AFTER
    )
    return present.order_by("since", "pk").first()


def _lock_on(tenant_id: int, uri: str, now: datetime) -> ResourceLock | None:
    """What is over is taken away, so that the next holder gets a row, and a fence, of its own."""
    locks = ResourceLock.objects.filter(tenant=tenant_id, uri=uri)
    lock = locks.select_for_update().first()
    if lock is not None and lock.expires_at <= now:
        lock.delete()
        return None
    return lock


def _held(holder: Holder, uri: str, now: datetime) -> ResourceLock:
    _one_at_a_time(holder.tenant_id)
    lock = _lock_on(holder.tenant_id, uri, now)
    if lock is None:
        raise NotHeld(f"nobody holds {uri}", reason="lock not found")
    if lock.holder != holder.name:
        raise LockRefused(
            f"{lock.holder} holds {uri}", reason="lock held by another", holder=lock.holder
        )
    return lock


def _renew(lock: ResourceLock, now: datetime, ttl: float | None) -> ResourceLock:
    seconds = lock.ttl_seconds if ttl is None else _ttl(lock.tenant_id, ttl)
    lock.ttl_seconds, lock.expires_at = seconds, now + timedelta(seconds=seconds)
    lock.save(update_fields=["ttl_seconds", "expires_at"])
    return lock


def _ttl(tenant_id: int, ttl: float | None) -> float:
    if ttl is not None:
        return min(ttl, LONGEST_TTL_SECONDS)
    settings = Tenant.objects.values_list("settings", flat=True).get(pk=tenant_id)
    return float(settings.get("resource_lock_timeout_seconds", DEFAULT_TTL_SECONDS))


def _waits_of(holder: Holder) -> "QuerySet[LockWait]":
    return LockWait.objects.filter(tenant=holder.tenant_id, holder=holder.name)


def _one_at_a_time(tenant_id: int) -> None:
    """Two that are refused at once would not see each other in the circle they make."""
    ENGINE.lock_number(_LOCKS, tenant_id % 2**31)


def as_number(seconds: float) -> float:
    return int(seconds) if seconds.is_integer() else seconds
