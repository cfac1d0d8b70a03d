"""`logs` of a remote Drover: stored lines, one run as it prints, and agents from run to run."""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from agents_app.console import (
    ALL_OR_NAMES,
    LabelledLog,
    ending_of,
    first_run_text,
    line_as_json,
    line_text,
    log_as_json,
    no_run_text,
)
from agents_app.errors import NotFound, Refused
from agents_app.remote.followed_runs import Ended, RunLine, RunStreams
from agents_app.remote.output import follow_run
from agents_app.remote.session import Session
from agents_app.remote.values import ReceivedLine, Row, read_line, read_run

PAGE = 5000
NO_AGENTS = "there are no agents yet (drover discover shows what is on disk)"


def logs(session: Session, *, targets: list[str], json: bool, **options: Any) -> int:
    if options["all"] and targets:
        raise Refused(ALL_OR_NAMES)
    times = options["times"]
    if not options["all"] and len(targets) < 2:
        run, agent = session.run_or_agent(targets[0]) if targets else (None, None)
        if options["follow"] and agent:
            _follow_one(session, agent["name"], json=json, times=times)
        else:
            run = run or _newest(session, agent["name"] if agent else "")
            _one(session, run, follow=options["follow"], json=json, times=times)
        return 0
    names = [session.agent(name.removeprefix("agent:"))["name"] for name in dict.fromkeys(targets)]
    names = names or sorted(session.agent_names())
    if not names:
        raise NotFound(NO_AGENTS)
    if options["follow"]:
        _follow(session, names, json=json, times=times)
    else:
        _together(session, names, json=json, times=times)
    return 0


def _newest(session: Session, agent: str) -> Row:
    newest = session.newest_run(agent=agent or None)
    if newest is None:
        raise NotFound(no_run_text(agent))
    return newest


# --- one run --------------------------------------------------------------------------------


def _one(session: Session, run: Row, *, follow: bool, json: bool, times: bool) -> None:
    run_id = run["id"]
    if json and follow:
        for line in _followed(session, run_id):
            session.screen.json_line(line_as_json(run_id, line))
    elif json:
        session.screen.json(_described(session, run))
    else:
        for line in _followed(session, run_id) if follow else _stored(session, run_id):
            session.screen.text(line_text(line, times=times))
        session.remark(ending_of(session.last_run(run_id)))


def _followed(session: Session, run_id: int) -> Iterator[ReceivedLine]:
    lines = follow_run(session.api, run_id, broken=session.remark)
    return (line for line in lines if line is not None)


def _stored(session: Session, run_id: int) -> Iterator[ReceivedLine]:
    """The lines that are stored now."""
    offset = 0
    while True:
        page = session.api.get(f"/runs/{run_id}/logs", offset=offset, limit=PAGE)
        yield from map(read_line, page["lines"])
        if page["next_offset"] == offset or len(page["lines"]) < PAGE:
            return
        offset = page["next_offset"]


def _described(session: Session, run: Row) -> dict[str, object]:
    lines = list(_stored(session, run["id"]))
    complete = run["finished_at"] is not None
    return log_as_json(run["agent"], read_run(run), lines, complete=complete)


# --- one agent ------------------------------------------------------------------------------


def _follow_one(session: Session, agent: str, *, json: bool, times: bool) -> None:
    """The newest run, then each run to come, until Ctrl-C; lines without the agent's name."""
    newest = session.newest_run(agent=agent)
    after = 0 if newest is None else int(newest["id"])
    if newest is None:
        session.remark(first_run_text(agent))
    elif newest["finished_at"] is not None and not json:
        _one(session, newest, follow=False, json=False, times=times)
    # A run that was unfinished is followed even if it has ended meanwhile.
    if newest is not None and newest["finished_at"] is None:
        after -= 1

    def show(each: RunLine) -> None:
        session.screen.text(line_text(each.line, times=times))

    _print_followed(session, RunStreams(session, [agent], after), show, json=json)


# --- several runs ---------------------------------------------------------------------------


def _together(session: Session, names: list[str], *, json: bool, times: bool) -> None:
    found = [session.newest_run(agent=name) for name in names]
    runs = [run for run in found if run is not None]
    if json:
        session.screen.json({"runs": [_described(session, run) for run in runs]})
        return
    log = LabelledLog(session.screen, names, times=times)
    each = (_lines_of(session, run) for run in runs)
    for agent, run_id, line in heapq.merge(*each, key=lambda each: each[2].at):
        log.print(agent, run_id, line)
    for run in runs:
        session.remark(f"{run['agent']}: {ending_of(read_run(run))}")


def _lines_of(session: Session, run: Row) -> Iterator[tuple[str, int, ReceivedLine]]:
    for line in _stored(session, run["id"]):
        yield run["agent"], run["id"], line


def _follow(session: Session, names: list[str], *, json: bool, times: bool) -> None:
    """Until Ctrl-C, which is the usual end of the command and no failure."""
    newest = [session.newest_run(agent=name) for name in names]
    after = max((int(run["id"]) for run in newest if run), default=0)
    log = LabelledLog(session.screen, names, times=times)

    def show(each: RunLine) -> None:
        log.print(each.agent, each.run_id, each.line)

    _print_followed(session, RunStreams(session, names, after), show, json=json)


def _print_followed(
    session: Session, follower: RunStreams, show: Callable[[RunLine], None], *, json: bool
) -> None:
    try:
        for each in follower.follow():
            if isinstance(each, Ended):
                session.remark(f"{each.agent}: run {each.run_id} {each.state}")
            elif json:
                line = line_as_json(each.run_id, each.line)
                session.screen.json_line({"agent": each.agent, **line})
            else:
                show(each)
    except KeyboardInterrupt:
        return
