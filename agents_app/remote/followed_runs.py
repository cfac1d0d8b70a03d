"""Follows the unfinished runs of agents and the runs that start meanwhile, one stream per run."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic
from typing import Any

from agents_app.errors import DroverError
from agents_app.remote.connection import RemoteUnreachable
from agents_app.remote.output import GIVE_UP_SECONDS, follow_run
from agents_app.remote.session import Session
from agents_app.remote.values import ReceivedLine, Row

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RunLine:
    agent: str
    run_id: int
    line: ReceivedLine


@dataclass(frozen=True, slots=True)
class Ended:
    agent: str
    run_id: int
    state: str


class RunStreams:
    """Follows the runs of some agents that are unfinished, or that come after the run `after`."""

    def __init__(self, session: Session, agents: Sequence[str], after: int) -> None:
        self._session, self._agents = session, frozenset(agents)
        self._known: set[int] = set()
        self._after = after
        self._found: SimpleQueue[RunLine | Ended | DroverError] = SimpleQueue()

    def follow(self) -> Iterator[RunLine | Ended]:
        """Yields lines, and the end of each run; ends with an error only."""
        self._start(self._watch)
        while True:
            each = self._found.get()
            if isinstance(each, DroverError):
                raise each
            yield each

    def _start(self, work: object, *arguments: object) -> None:
        # Daemons: Ctrl-C ends the command while streams are open.
        threading.Thread(target=self._guarded, args=(work, *arguments), daemon=True).start()

    def _guarded(self, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except DroverError as error:
            self._found.put(error)

    def _watch(self) -> None:
        """Start a stream for each new run; goes on after a time in which Drover was away."""
        answered_at = monotonic()
        while True:
            try:
                for run in self._new_runs():
                    self._known.add(run["id"])
                    self._start(self._follow, run)
                answered_at = monotonic()
            except RemoteUnreachable:
                if monotonic() - answered_at > GIVE_UP_SECONDS:
                    raise
            time.sleep(POLL_SECONDS)

    def _new_runs(self) -> list[Row]:
        """Also by their number: a run may begin and end between two polls."""
        only: dict[str, Any] = {"agent": next(iter(self._agents))} if len(self._agents) == 1 else {}
        newer = []
        for run in self._session.api.pages("/runs", "runs", **only):
            if run["id"] <= self._after:
                break
            newer.append(run)
        # A run before `after` may be unfinished when the command starts; none joins them later.
        older = [] if self._known else self._session.unfinished_runs(**only)
        found = {run["id"]: run for run in [*older, *newer]}
        mine = (found[key] for key in sorted(found.keys() - self._known))
        return [run for run in mine if run["agent"] in self._agents]

    def _follow(self, run: Row) -> None:
        agent, run_id = run["agent"], run["id"]
        for line in follow_run(self._session.api, run_id, broken=self._session.remark):
            if line is not None:
                self._found.put(RunLine(agent, run_id, line))
        state = self._session.last_run(run_id).state
        self._found.put(Ended(agent, run_id, state))
