"""What a running agent tells Drover, one function each: SIGNALS by name.

Each gets the run whose token was shown, the fields and the time. A reply that is not `done` is to
be asked for again a little later: that is how a run waits, and nobody holds anything meanwhile.
"""

from datetime import datetime
from functools import partial
from typing import Any

from agents_app.budgets import holds
from agents_app.database import in_transaction
from agents_app.errors import NotFound
from agents_app.harness import MOST_TOKENS, MOST_USD
from agents_app.models import Run
from agents_app.runs import dispatch
from agents_app.secrets import redactor_for
from agents_app.signals import calls, lock_signals, locks, messages, schedule_lines
from agents_app.signals.calls import note_signal
from agents_app.signals.fields import (
    BadField,
    Fields,
    TooLong,
    call_id,
    flag,
    ids,
    number,
    only,
    required_number,
    text,
    whole,
)
from agents_app.signals.files import LONGEST_BYTES as LONGEST_RETURN
from agents_app.signals.files import LONGEST_STATUS, UNRECOVERABLE
from agents_app.signals.locks import holder_of
from agents_app.signals.replies import (
    LONGEST_WAIT_SECONDS,
    Reply,
    Signal,
    epoch,
    patience,
    say,
)
from agents_app.signals.tokens import run_of
from agents_app.text import summary

# What a run writes freely: a secret of its own may be in it.
FREE_TEXTS = frozenset({"text", "line"})


# --- from a token to a signal ---------------------------------------------------------------


def obey(token: str, name: str, fields: Fields, now: datetime) -> Reply:
    signal = SIGNALS.get(name)
    run = run_of(token, now)
    if signal is None:
        raise NotFound(f"there is no signal {name[:80]!r}: use {', '.join(sorted(SIGNALS))}")
    return signal(run, _without_secrets(run, token, fields), now)


def _without_secrets(run: Run, token: str, fields: Fields) -> Fields:
    """Here, because it is in a row afterwards; a run that has no credentials costs no query."""
    if not FREE_TEXTS & fields.keys():
        return fields
    redactor = redactor_for(run.tenant_id, run.agent.credentials, token)
    written = {name for name in FREE_TEXTS & fields.keys() if isinstance(fields[name], str)}
    return {**fields, **{name: redactor.clean_text(text(fields, name)) for name in written}}


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
    return say(run, now, status_text=text(fields, "text")[:LONGEST_STATUS])


def progress(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "percent", "text")
    columns: dict[str, Any] = {"progress_percent": required_number(fields, "percent", 0, 100)}
    if "text" in fields:
        columns["status_text"] = text(fields, "text")[:LONGEST_STATUS]
    return say(run, now, **columns)


def rerun(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields)
    return say(run, now, "run.rerun_requested", rerun_requested=True)


def return_(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "text")
    value = text(fields, "text")
    if len(value.encode()) > LONGEST_RETURN:
        raise TooLong(f"text: a return value has at most {LONGEST_RETURN} bytes")
    return say(run, now, "run.returned", return_value=value, result_summary=summary(value))


def exit_(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "code")
    code = whole(fields, "code", 0, 255, UNRECOVERABLE)
    return say(run, now, "run.exit_requested", detail=str(code), exit_signal=code)


def shutdown(run: Run, fields: Fields, now: datetime) -> Reply:
    """As when a person stops it: asked to end, then killed."""
    only(fields)
    say(run, now)
    dispatch.request_stop([run], now, "stopped by itself")
    return Reply({"ok": True})


def usage(run: Run, fields: Fields, now: datetime) -> Reply:
    """What it used since it last said so; over its budget it is asked to end."""
    kinds = ("tokens_in", "tokens_out", "tokens_cache")
    only(fields, *kinds, "cost_usd")
    tokens = {kind: whole(fields, kind, 0, MOST_TOKENS, 0) for kind in kinds}
    cost_usd = number(fields, "cost_usd", 0, MOST_USD, 0.0) or 0.0
    say(run, now)
    spent = holds.note_usage(run.pk, **tokens, cost_usd=cost_usd, now=now)
    totals = {kind: getattr(spent.totals, kind) for kind in kinds}
    totals["cost_usd"] = float(spent.totals.cost_usd)
    return Reply({"ok": True, "totals": totals, "over_budget": bool(spent.over)})


def schedule(run: Run, fields: Fields, now: datetime) -> Reply:
    """PHRASE: MESSAGE | list | cancel N | pause N | resume N, as in a `/schedule` line."""
    only(fields, "line")
    line = text(fields, "line")
    say(run, now)
    answer = schedule_lines.run_schedule_line(
        run.agent, line, now, by=f"run {run.pk} of {run.agent.name}"
    )
    if not answer.ok:
        raise BadField(answer.text)
    return Reply({"ok": True, "text": answer.text, "scheduleId": answer.schedule_id})


# --- calls ----------------------------------------------------------------------------------


def call(run: Run, fields: Fields, now: datetime) -> Reply:
    only(fields, "agent", "text")
    made = calls.call(run, text(fields, "agent"), text(fields, "text", ""), now)
    return Reply({"ok": True, **made.shown()})


def check(run: Run, fields: Fields, _now: datetime) -> Reply:
    only(fields, "id")
    found = calls.check(run.pk, call_id(fields, "id"))
    return Reply({"ok": True, **found.shown()})


def wait(run: Run, fields: Fields, now: datetime) -> Reply:
    """While it waits it does not work: what it called may have its place."""
    only(fields, "ids", "timeout")
    wanted, seconds = ids(fields, "ids"), patience(fields, LONGEST_WAIT_SECONDS)
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


# --- messages -------------------------------------------------------------------------------


def inbox(run: Run, fields: Fields, now: datetime) -> Reply:
    """Without a timeout it answers at once; with one it waits for the first message."""
    only(fields, "timeout", "peek")
    seconds, peek = patience(fields, 0.0), flag(fields, "peek")
    if run.signaled_at is None:
        say(run, now)
    found = messages.unread(run) if peek else messages.read(run, now)
    shown = [
        {"id": each.pk, "from": each.sender, "at": epoch(each.created_at), "text": each.text}
        for each in found
    ]
    return Reply({"ok": True, "messages": shown}, bool(shown) or not seconds, seconds)


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
    "lock": lock_signals.lock,
    "unlock": lock_signals.unlock,
    "lock-heartbeat": lock_signals.lock_heartbeat,
    "inbox": inbox,
    "usage": usage,
    "schedule": schedule,
}
