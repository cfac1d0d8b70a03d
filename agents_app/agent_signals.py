"""What a running agent tells Drover, one function each: SIGNALS by name.

Each gets the run whose token was shown, the fields and the time. A reply that is not `done` is to
be asked for again a little later: that is how a run waits, and nobody holds anything meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from agents_app import calls, dispatch, journal, locks, messages
from agents_app.calls import note_signal
from agents_app.commit import in_transaction
from agents_app.errors import NotFound
from agents_app.locks import LockRefused, holder_of
from agents_app.models import ResourceLock, Run
from agents_app.run_tokens import run_of
from agents_app.signal_fields import (
    Fields,
    TooLong,
    flag,
    ids,
    is_flag,
    number,
    only,
    required_number,
    text,
    whole,
)

LONGEST_RETURN = 1_000_000
LONGEST_SUMMARY = 4096
CUT = "\n…[truncated]"
LONGEST_STATUS = 500
UNRECOVERABLE = 15
# In one piece; whoever wants to wait longer asks again.
LONGEST_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Reply:
    """`wait_seconds` is how long the run is willing to wait for one that is done."""

    content: Mapping[str, Any]
    done: bool = True
    wait_seconds: float = 0.0


Signal = Callable[[Run, Fields, datetime], Reply]


# --- from a token to a signal ---------------------------------------------------------------


def obey(token: str, name: str, fields: Fields, now: datetime) -> Reply:
    signal = SIGNALS.get(name)
    run = run_of(token, now)
    if signal is None:
        raise NotFound(f"there is no signal {name[:80]!r}: use {', '.join(sorted(SIGNALS))}")
    return signal(run, fields, now)


def leave(token: str, name: str, fields: Fields, now: datetime) -> None:
    """Whoever waited does not wait any more: time is up, or the connection is gone."""
    run = run_of(token, now)
    if name == "wait":
        in_transaction(partial(_stop_waiting, run))
    if name == "lock":
        locks.leave_the_line(holder_of(run), text(fields, "uri"))


# --- what it says of itself -----------------------------------------------------------------


def status(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "text")
    return _say(run, now, status_text=text(fields, "text")[:LONGEST_STATUS])


def progress(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "percent", "text")
    columns: dict[str, Any] = {"progress_percent": required_number(fields, "percent", 0, 100)}
    if "text" in fields:
        columns["status_text"] = text(fields, "text")[:LONGEST_STATUS]
    return _say(run, now, **columns)


def rerun(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields)
    return _say(run, now, "run.rerun_requested", rerun_requested=True)


def return_(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "text")
    value = text(fields, "text")
    if len(value.encode()) > LONGEST_RETURN:
        raise TooLong(f"text: a return value has at most {LONGEST_RETURN} bytes")
    return _say(run, now, "run.returned", return_value=value, result_summary=summary(value))


def summary(value: str) -> str:
    """At most 4096 bytes and whole characters, with a mark where the rest was cut off."""
    data = value.encode()
    if len(data) <= LONGEST_SUMMARY:
        return value
    return data[:LONGEST_SUMMARY].decode(errors="ignore") + CUT


def exit_(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "code")
    code = whole(fields, "code", 0, 255, UNRECOVERABLE)
    return _say(run, now, "run.exit_requested", detail=str(code), exit_signal=code)


def shutdown(run: Run, fields: Fields, now: datetime) -> Reply:
    """As when a person stops it: asked to end, then killed."""
    only(fields)
    _say(run, now)
    dispatch.request_stop([run], now, "stopped by itself")
    return Reply({"ok": True})


# --- calls ----------------------------------------------------------------------------------


def call(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "agent", "text")
    made = calls.call(run, text(fields, "agent"), text(fields, "text", ""), now)
    return Reply({"ok": True, **made.shown()})


def check(run: Run, fields: Fields, _now: datetime) -> Reply:
    only(fields, "id")
    found = calls.check(run.pk, whole(fields, "id", 1, 2**63 - 1))
    return Reply({"ok": True, **found.shown()})


def wait(run: Run, fields: Fields, now: datetime) -> Reply:
    """While it waits it does not work: what it called may have its place."""
    only(fields, "ids", "timeout")
    wanted, seconds = ids(fields, "ids"), _seconds(fields, LONGEST_WAIT_SECONDS)
    found = calls.states(run.pk, wanted)
    if missing := set(wanted) - {each.call_id for each in found}:
        raise NotFound(f"there is no call {min(missing)} of this run")
    done = all(each.is_over for each in found)
    if done:
        in_transaction(partial(_stop_waiting, run))
    else:
        if run.waiting_since is None:
            in_transaction(partial(note_signal, run, now, waiting_since=now))
        calls.lend_to(run.pk, found, now)
    shown = [each.shown() for each in found]
    return Reply({"ok": True, "done": done, "calls": shown}, done, seconds)


def _stop_waiting(run: Run) -> None:
    Run.objects.filter(pk=run.pk, waiting_since__isnull=False).update(waiting_since=None)


# --- locks ----------------------------------------------------------------------------------


def lock(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "uri", "ttl", "wait", "timeout")
    uri, ttl, seconds = text(fields, "uri"), _ttl(fields), _patience(fields)
    in_line = seconds > 0

    def change() -> ResourceLock | LockRefused:
        # The run's row first: if it ends meanwhile, whoever ends it finds the lock.
        note_signal(run, now)
        outcome = locks.try_to_acquire(holder_of(run), uri, now, ttl, in_line=in_line)
        if isinstance(outcome, ResourceLock):
            _record(run, "run.locked", uri, now)
        return outcome

    held = in_transaction(change)
    if isinstance(held, ResourceLock):
        return Reply({"ok": True, "expiresAt": _epoch(held.expires_at), "fence": held.pk})
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
        _record(run, "run.unlocked", uri, now)

    in_transaction(change)
    return Reply({"ok": True})


def lock_heartbeat(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "uri", "ttl")
    uri, ttl = text(fields, "uri"), _ttl(fields)

    def change() -> ResourceLock:
        note_signal(run, now)
        return locks.heartbeat(holder_of(run), uri, now, ttl)

    return Reply({"ok": True, "expiresAt": _epoch(in_transaction(change).expires_at)})


def _patience(fields: Fields) -> float:
    """`wait` is yes, with or without a timeout, or the seconds themselves."""
    if is_flag(fields, "wait"):
        return _seconds(fields, LONGEST_WAIT_SECONDS) if flag(fields, "wait") else 0.0
    return min(number(fields, "wait", 0, 86_400) or 0.0, LONGEST_WAIT_SECONDS)


def _ttl(fields: Fields) -> float | None:
    return number(fields, "ttl", 0.001, locks.LONGEST_TTL_SECONDS)


# --- messages -------------------------------------------------------------------------------


def inbox(run: Run, fields: Fields, now: datetime) -> Reply:
    """Without a timeout it answers at once; with one it waits for the first message."""
    only(fields, "timeout", "peek")
    seconds, peek = _seconds(fields, 0.0), flag(fields, "peek")
    if run.signaled_at is None:
        _say(run, now)
    found = messages.unread(run) if peek else messages.read(run, now)
    shown = [
        {"id": each.pk, "from": each.sender, "at": _epoch(each.created_at), "text": each.text}
        for each in found
    ]
    return Reply({"ok": True, "messages": shown}, bool(shown) or not seconds, seconds)


# --- the parts ------------------------------------------------------------------------------


def _say(run: Run, now: datetime, event: str = "", detail: str = "", **columns: Any) -> Reply:
    def change() -> None:
        note_signal(run, now, **columns)
        if event:
            _record(run, event, detail, now)

    in_transaction(change)
    return Reply({"ok": True})


def _record(run: Run, name: str, detail: str, now: datetime) -> None:
    journal.record(journal.Entry(name, now, run.tenant_id, run.agent_id, run.pk, detail))


def _seconds(fields: Fields, default: float) -> float:
    """A longer wait is made of several: see LONGEST_WAIT_SECONDS."""
    asked = number(fields, "timeout", 0, 86_400, default)
    return min(default if asked is None else asked, LONGEST_WAIT_SECONDS)


def _epoch(at: datetime) -> float:
    return locks.as_number(at.timestamp())


SIGNALS: dict[str, Signal] = {
    "status": status,
    "progress": progress,
    "rerun": rerun,
    "return": return_,
    "exit": exit_,
    "shutdown": shutdown,
    "call": call,
    "check": check,
    "wait": wait,
    "lock": lock,
    "unlock": unlock,
    "lock-heartbeat": lock_heartbeat,
    "inbox": inbox,
}
