"""The handlers of signals, one function per signal; `declarations` says which fields they get.

A handler gets the run whose token authenticated the request, the time, and the declared fields
as keyword arguments. Each opens its own transaction.
"""

import json
import re
from datetime import datetime
from functools import partial
from typing import Any

from agents_app.budgets import holds
from agents_app.database import in_transaction
from agents_app.errors import NotFound
from agents_app.events import journal
from agents_app.models import ResourceLock, Run
from agents_app.runs import dispatch
from agents_app.signals import calls, locks, messages, schedule_lines
from agents_app.signals.calls import record_signal
from agents_app.signals.contract import Reply
from agents_app.signals.fields import BadField, Fields, TooLong
from agents_app.signals.locks import LockRefused, holder_of
from agents_app.text import summary
from agents_app.webhooks.providers import Unparseable, read_json

MAX_STATUS_LENGTH = 500
MAX_RETURN_BYTES = 1_000_000
MAX_METADATA_BYTES = 64 * 1024
_METADATA_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
DEFAULT_EXIT_CODE = 15
# For one request; a longer wait takes several.
MAX_WAIT_SECONDS = 20.0


# --- the run itself -------------------------------------------------------------------------


def status(run: Run, now: datetime, text: str) -> Reply:
    return _update(run, now, status_text=text[:MAX_STATUS_LENGTH])


def progress(run: Run, now: datetime, percent: float, text: str | None) -> Reply:
    columns: dict[str, Any] = {"progress_percent": percent}
    if text is not None:
        columns["status_text"] = text[:MAX_STATUS_LENGTH]
    return _update(run, now, **columns)


def rerun(run: Run, now: datetime) -> Reply:
    return _update(run, now, "run.rerun_requested", rerun_requested=True)


def return_(run: Run, now: datetime, text: str) -> Reply:
    if len(text.encode()) > MAX_RETURN_BYTES:
        raise TooLong(f"text: a return value has at most {MAX_RETURN_BYTES} bytes")
    return _update(run, now, "run.returned", return_value=text, result_summary=summary(text))


def metadata(run: Run, now: datetime, key: str, value: str) -> Reply:
    """Set one value of the metadata that hooks of the run get."""
    if not _METADATA_KEY.fullmatch(key):
        raise BadField("key: must be 1 to 100 letters, digits, '_' or '-'")
    read = read_json(value.encode())
    entry = {key: value if isinstance(read, Unparseable) else read}

    def change() -> None:
        # The row first: of two signals at the same time none is lost.
        record_signal(run, now)
        stored = Run.objects.values_list("metadata_json", flat=True).get(pk=run.pk)
        written = json.dumps((json.loads(stored) if stored else {}) | entry)
        if len(written) > MAX_METADATA_BYTES:
            raise TooLong(f"value: all metadata of a run has at most {MAX_METADATA_BYTES} bytes")
        record_signal(run, now, metadata_json=written)

    in_transaction(change)
    return Reply({"ok": True})


def exit_(run: Run, now: datetime, code: int) -> Reply:
    return _update(run, now, "run.exit_requested", detail=str(code), exit_signal=code)


def shutdown(run: Run, now: datetime) -> Reply:
    """Stop the run as a person would: SIGTERM, then SIGKILL after the grace period."""
    _update(run, now)
    dispatch.request_stop([run], now, "stopped by itself", by=f"run {run.pk}")
    return Reply({"ok": True})


def usage(
    run: Run, now: datetime, tokens_in: int, tokens_out: int, tokens_cache: int, cost_usd: float
) -> Reply:
    """Add to the usage of the run; a run over its budget is stopped."""
    tokens = {"tokens_in": tokens_in, "tokens_out": tokens_out, "tokens_cache": tokens_cache}
    _update(run, now)
    spent = holds.record_usage(run.pk, **tokens, cost_usd=cost_usd, now=now)
    totals = {kind: getattr(spent.totals, kind) for kind in tokens}
    totals["cost_usd"] = float(spent.totals.cost_usd)
    return Reply({"ok": True, "totals": totals, "over_budget": bool(spent.over)})


def schedule(run: Run, now: datetime, line: str) -> Reply:
    _update(run, now)
    answer = schedule_lines.run_schedule_line(
        run.agent, line, now, by=f"run {run.pk} of {run.agent.name}"
    )
    if not answer.ok:
        raise BadField(answer.text)
    return Reply({"ok": True, "text": answer.text, "scheduleId": answer.schedule_id})


# --- calls ----------------------------------------------------------------------------------


def call(run: Run, now: datetime, agent: str, text: str) -> Reply:
    state = calls.call(run, agent, text, now)
    return Reply({"ok": True, **state.as_json()})


def check(run: Run, _now: datetime, id: int) -> Reply:
    return Reply({"ok": True, **calls.check(run.pk, id).as_json()})


def wait(run: Run, now: datetime, ids: list[int], timeout: float | None) -> Reply:
    """While the run waits, the runs it called may use its slot."""
    found = calls.states(run.pk, ids)
    if missing := set(ids) - {state.call_id for state in found}:
        raise NotFound(f"there is no call {min(missing)} of this run")
    done = all(state.is_over for state in found)
    if done:
        stop_waiting(run)
    else:
        if run.waiting_since is None:
            in_transaction(partial(record_signal, run, now, waiting_since=now))
        calls.lend_slot(run.pk, found, now)
    content = {"ok": True, "done": done, "calls": [state.as_json() for state in found]}
    return Reply(content, done, _wait_seconds(timeout, MAX_WAIT_SECONDS))


def stop_waiting(run: Run, _fields: Fields | None = None) -> None:
    waiting = Run.objects.filter(pk=run.pk, waiting_since__isnull=False)
    in_transaction(lambda: waiting.update(waiting_since=None))


# --- locks ----------------------------------------------------------------------------------


def lock(
    run: Run, now: datetime, uri: str, ttl: float | None, wait: bool | float, timeout: float | None
) -> Reply:
    """`wait` is whether to wait, for `timeout` seconds, or the number of seconds itself."""
    if isinstance(wait, bool):
        seconds = _wait_seconds(timeout, MAX_WAIT_SECONDS) if wait else 0.0
    else:
        seconds = min(wait, MAX_WAIT_SECONDS)
    queued = seconds > 0

    def change() -> ResourceLock | LockRefused:
        # The run's row first: a transaction that ends the run meanwhile then finds the lock.
        record_signal(run, now)
        outcome = locks.try_to_acquire(holder_of(run), uri, now, ttl, queued=queued)
        if isinstance(outcome, ResourceLock):
            _record_event("run.locked", run, uri, now)
        return outcome

    held = in_transaction(change)
    if isinstance(held, ResourceLock):
        return Reply({"ok": True, "expiresAt": _epoch(held.expires_at), "fence": held.pk})
    if not queued or "deadlock" in held.more:
        raise held
    error = {"code": held.code, "message": str(held)}
    return Reply({**held.more, "error": error}, done=False, wait_seconds=seconds)


def leave_lock_queue(run: Run, fields: Fields) -> None:
    locks.leave_queue(holder_of(run), fields["uri"])


def unlock(run: Run, now: datetime, uri: str) -> Reply:
    def change() -> None:
        record_signal(run, now)
        locks.release(holder_of(run), uri, now)
        _record_event("run.unlocked", run, uri, now)

    in_transaction(change)
    return Reply({"ok": True})


def lock_heartbeat(run: Run, now: datetime, uri: str, ttl: float | None) -> Reply:
    def change() -> ResourceLock:
        record_signal(run, now)
        return locks.heartbeat(holder_of(run), uri, now, ttl)

    return Reply({"ok": True, "expiresAt": _epoch(in_transaction(change).expires_at)})


# --- messages -------------------------------------------------------------------------------


def inbox(run: Run, now: datetime, timeout: float | None, peek: bool) -> Reply:
    """Without a timeout the reply comes at once; with one it waits for the first message."""
    seconds = _wait_seconds(timeout, 0.0)
    if run.signaled_at is None:
        _update(run, now)
    found = messages.unread(run) if peek else messages.read(run, now)
    shown = [
        {"id": each.pk, "from": each.sender, "at": _epoch(each.created_at), "text": each.text}
        for each in found
    ]
    return Reply({"ok": True, "messages": shown}, bool(shown) or not seconds, seconds)


# --- shared by handlers ---------------------------------------------------------------------


def _update(run: Run, now: datetime, name: str = "", detail: str = "", **columns: Any) -> Reply:
    """Set columns of the running run, and record the event `name` if there is one."""

    def change() -> None:
        record_signal(run, now, **columns)
        if name:
            _record_event(name, run, detail, now)

    in_transaction(change)
    return Reply({"ok": True})


def _record_event(name: str, run: Run, detail: str, now: datetime) -> None:
    """In the caller's transaction."""
    journal.record(
        journal.JournalEntry(name, now, run.tenant_id, run.agent_id, run.pk, detail, run.trace_id)
    )


def _wait_seconds(timeout: float | None, default: float) -> float:
    return min(default if timeout is None else timeout, MAX_WAIT_SECONDS)


def _epoch(at: datetime) -> float:
    return locks.as_json_number(at.timestamp())


# --- signals left in files ------------------------------------------------------------------


def columns_of_rerun(_text: str) -> dict[str, Any]:
    return {"rerun_requested": True}


def columns_of_status(text: str) -> dict[str, Any]:
    return {"status_text": text.strip()[:MAX_STATUS_LENGTH]}


def columns_of_return(text: str) -> dict[str, Any]:
    return {"return_value": text, "result_summary": summary(text)}


def columns_of_exit(text: str) -> dict[str, Any]:
    digits = text.strip()
    known = digits.isascii() and digits.isdigit() and len(digits) <= 3 and int(digits) <= 255
    return {"exit_signal": int(digits) if known else DEFAULT_EXIT_CODE}
