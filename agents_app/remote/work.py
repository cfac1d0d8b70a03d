"""`run`, `rerun` and `stop` of a remote Drover."""

import time
from time import monotonic
from typing import Any

from agents_app.console import (
    DRAIN_CONTINUES,
    INTERRUPTED,
    KEEP_QUEUE_REFUSED,
    NO_WORKER,
    TIMED_OUT,
    LastRun,
    cleared_text,
    continues_text,
    ending_of,
    exit_code_of,
    line_text,
    seconds_of,
    stopping_agent_text,
    stopping_run_text,
    timed_out_text,
    wait_seconds,
    waiting_work_text,
    work_as_json,
    work_text,
)
from agents_app.errors import Refused
from agents_app.remote.connection import RemoteUnreachable, segment
from agents_app.remote.output import follow_run
from agents_app.remote.session import Session
from agents_app.remote.values import Row, read_run

POLL_SECONDS = 0.5
REPORT_SECONDS = 5.0
LIVE = ("queued", "admitted")


class WaitIsOver(Exception):
    """The time to wait is over, and the work has not ended."""


def run(
    session: Session, *, agent: str, prompt: str, wait: bool, timeout: str, json: bool, **_: Any
) -> int:
    seconds = wait_seconds(wait=wait, timeout=timeout)
    name = session.agent(agent)["name"]
    accepted = session.api.post(f"/agents/{segment(name)}/run", {"prompt": prompt})
    return report(session, accepted, json=json, wait=wait, seconds=seconds)


def rerun(
    session: Session, *, runs: list[str], wait: bool, timeout: str, json: bool, **_: Any
) -> int:
    seconds = wait_seconds(wait=wait, timeout=timeout)
    found = [session.run(text)["id"] for text in dict.fromkeys(runs)]
    if len(found) > 1 and wait:
        raise Refused("--wait follows one run: name one run, or omit --wait")
    accepted = [session.api.post(f"/runs/{run_id}/rerun") for run_id in found]
    if len(found) == 1:
        return report(session, accepted[0], json=json, wait=wait, seconds=seconds)
    _warn_without_worker(session)
    if json:
        session.screen.json({"asked": [_described(session, work) for work in accepted]})
    else:
        for work in accepted:
            _say_accepted(session, work)
    return 0


# --- work that was accepted -----------------------------------------------------------------


def report(session: Session, accepted: Row, *, json: bool, wait: bool, seconds: float) -> int:
    """Print the work item; with `wait` also follow its runs, and return their exit code."""
    _warn_without_worker(session)
    if json and not wait:
        session.screen.json(_described(session, accepted))
    elif not json:
        _say_accepted(session, accepted)
    return _wait(session, accepted, seconds, json=json) if wait else 0


def _warn_without_worker(session: Session) -> None:
    if "worker" in session.api.get("/scheduler")["missing_processes"]:
        session.remark(NO_WORKER)


def _say_accepted(session: Session, accepted: Row) -> None:
    keys = ("work_item_id", "agent", "run_id", "waits_because")
    session.screen.say(work_text(*(accepted[key] for key in keys)))


def _described(session: Session, accepted: Row) -> dict[str, object]:
    run_id = accepted["run_id"]
    same = ("work_item_id", "agent", "state", "trace_id", "waits_because")
    run = session.last_run(run_id) if run_id else None
    return work_as_json(**{key: accepted[key] for key in same}, run=run)


def _wait(session: Session, accepted: Row, seconds: float, *, json: bool) -> int:
    """Follows all runs of the work item; returns the exit code of the last."""
    item_id, agent = accepted["work_item_id"], accepted["agent"]
    try:
        run = _follow_runs(session, item_id, monotonic() + seconds, json=json)
    except WaitIsOver:
        found = session.newest_run(work_item_id=item_id)
        shown = read_run(found) if found else None
        if json:
            session.screen.json(_now(session, accepted, shown))
        reason = accepted["waits_because"]
        session.remark(timed_out_text(seconds, item_id, agent, shown, reason))
        return TIMED_OUT
    except KeyboardInterrupt:
        session.remark(continues_text(item_id, agent))
        return INTERRUPTED
    if json:
        session.screen.json(_now(session, accepted, run))
    if run is None:
        item = session.api.get(f"/queue/{item_id}")
        session.remark(f"work item {item_id} never ran: {item['state']}, {item['reason']}")
    return exit_code_of(run)


def _now(session: Session, accepted: Row, run: LastRun | None) -> dict[str, object]:
    state = session.api.get(f"/queue/{accepted['work_item_id']}")["state"]
    waits = accepted["waits_because"] if state == "queued" else None
    same = {key: accepted[key] for key in ("work_item_id", "agent", "trace_id")}
    return work_as_json(**same, state=state, waits_because=waits, run=run)


def _follow_runs(
    session: Session, item_id: int, give_up_at: float, *, json: bool
) -> LastRun | None:
    """Each run of the work item when it exists, retries too, until the work item has ended."""
    last = 0
    while True:
        state = session.api.get(f"/queue/{item_id}")["state"]
        found = session.api.pages("/runs", "runs", work_item_id=item_id)
        new = sorted(row["id"] for row in found if row["id"] > last)
        if new:
            last = new[0]
            _follow(session, last, give_up_at, json=json)
        elif state not in LIVE:
            return session.last_run(last) if last else None
        else:
            _sleep_until(give_up_at)


def _follow(session: Session, run_id: int, give_up_at: float, *, json: bool) -> None:
    for line in follow_run(session.api, run_id, give_up_at=give_up_at):
        if line is None:
            raise WaitIsOver
        if not json:
            session.screen.text(line_text(line, times=False))
    session.remark(ending_of(session.last_run(run_id)))


def _sleep_until(give_up_at: float) -> None:
    left = give_up_at - monotonic()
    if left <= 0:
        raise WaitIsOver
    time.sleep(min(POLL_SECONDS, left))


# --- stop -----------------------------------------------------------------------------------


def stop(
    session: Session, *, target: str, timeout: str, keep_queue: bool, json: bool, **_: Any
) -> int:
    seconds = seconds_of(timeout, "--timeout") if timeout else None
    if not target:
        _shut_down(session, seconds, keep_queue=keep_queue, json=json)
        return 0
    if keep_queue:
        raise Refused(KEEP_QUEUE_REFUSED)
    run, agent = session.run_or_agent(target)
    runs, text = _stop_run(session, run) if run else _stop_agent(session, agent or {})
    if seconds is not None:
        _wait_for_runs(session, runs, seconds)
    session.result(text, {"runs": runs, "ended": seconds is not None}, json=json)
    return 0


def _stop_run(session: Session, run: Row) -> tuple[list[int], str]:
    session.api.post(f"/runs/{run['id']}/stop")
    return [run["id"]], stopping_run_text(run["id"], asked=run["stop_requested_at"] is None)


def _stop_agent(session: Session, agent: Row) -> tuple[list[int], str]:
    name = agent["name"]
    runs = [row["id"] for row in session.unfinished_runs(agent=name)]
    session.api.post(f"/agents/{segment(name)}/stop")
    if agent["queue_depth"]:
        session.remark(waiting_work_text(name, agent["queue_depth"]))
    return runs, stopping_agent_text(name, len(runs))


def _wait_for_runs(session: Session, runs: list[int], seconds: float) -> None:
    give_up_at = monotonic() + seconds
    while live := [key for key in runs if session.api.get(f"/runs/{key}")["finished_at"] is None]:
        if monotonic() >= give_up_at:
            raise Refused(f"after {seconds:g} s {_runs(len(live))} still running")
        time.sleep(POLL_SECONDS)


def _shut_down(session: Session, seconds: float | None, *, keep_queue: bool, json: bool) -> None:
    cleared = session.api.post("/scheduler/stop", {"keep_queue": keep_queue})["cleared"]
    if cleared:
        session.remark(cleared_text(cleared))
    try:
        _wait_until_stopped(session, seconds)
    except KeyboardInterrupt:
        session.remark(DRAIN_CONTINUES)
        raise
    session.result("stopped", {"state": "stopped", "cleared": cleared}, json=json)


def _wait_until_stopped(session: Session, seconds: float | None) -> None:
    """Until the gateway, which ends last, does not answer."""
    began = reported = monotonic()
    while True:
        try:
            status = session.api.get("/scheduler")
        except RemoteUnreachable:
            return
        if status["state"] == "stopped":
            return
        count, passed = status["running"], monotonic() - began
        if seconds is not None and passed >= seconds:
            raise Refused(f"after {seconds:g} s {_runs(count)} still running: {DRAIN_CONTINUES}")
        if monotonic() - reported >= REPORT_SECONDS:
            reported = monotonic()
            session.remark(f"waiting: {_runs(count)} still running")
        time.sleep(POLL_SECONDS)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"
