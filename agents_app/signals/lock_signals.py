"""The signals about locks: take one, wait for one, keep it, give it back."""

from datetime import datetime

from agents_app.database import in_transaction
from agents_app.models import ResourceLock, Run
from agents_app.signals import locks
from agents_app.signals.calls import note_signal
from agents_app.signals.fields import Fields, flag, is_flag, number, only, text
from agents_app.signals.locks import LockRefused, holder_of
from agents_app.signals.replies import LONGEST_WAIT_SECONDS, Reply, epoch, patience, record


def lock(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "uri", "ttl", "wait", "timeout")
    uri, ttl, seconds = text(fields, "uri"), _ttl(fields), _willing(fields)
    in_line = seconds > 0

    def change() -> ResourceLock | LockRefused:
        # The run's row first: if it ends meanwhile, whoever ends it finds the lock.
        note_signal(run, now)
        outcome = locks.try_to_acquire(holder_of(run), uri, now, ttl, in_line=in_line)
        if isinstance(outcome, ResourceLock):
            record(run, "run.locked", uri, now)
        return outcome

    held = in_transaction(change)
    if isinstance(held, ResourceLock):
        return Reply({"ok": True, "expiresAt": epoch(held.expires_at), "fence": held.pk})
    if not in_line or "deadlock" in held.more:
        raise held
    error = {"code": held.code, "message": str(held)}
    return Reply({**held.more, "error": error}, done=False, wait_seconds=seconds)


def unlock(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "uri")
    uri = text(fields, "uri")

    def change() -> None:
        note_signal(run, now)
        locks.release(holder_of(run), uri, now)
        record(run, "run.unlocked", uri, now)

    in_transaction(change)
    return Reply({"ok": True})


def lock_heartbeat(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "uri", "ttl")
    uri, ttl = text(fields, "uri"), _ttl(fields)

    def change() -> ResourceLock:
        note_signal(run, now)
        return locks.heartbeat(holder_of(run), uri, now, ttl)

    return Reply({"ok": True, "expiresAt": epoch(in_transaction(change).expires_at)})


def _willing(fields: Fields) -> float:
    """`wait` is yes, with or without a timeout, or the seconds themselves."""
    if is_flag(fields, "wait"):
        return patience(fields, LONGEST_WAIT_SECONDS) if flag(fields, "wait") else 0.0
    return min(number(fields, "wait", 0, 86_400) or 0.0, LONGEST_WAIT_SECONDS)


def _ttl(fields: Fields) -> float | None:
    return number(fields, "ttl", 0.001, locks.LONGEST_TTL_SECONDS)
