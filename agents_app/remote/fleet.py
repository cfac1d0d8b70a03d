"""`stat` of a remote Drover."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agents_app.console import Fleet, Part, WorkerStatus, fleet_parts, interval_of, watch_fleet
from agents_app.remote.connection import NotAllowed
from agents_app.remote.session import Session
from agents_app.remote.values import Row, read_agent, read_scheduler, read_worker


class RemoteFleet:
    """Reads the fleet; `parts` also needs what the last answer said about its processes."""

    def __init__(self, session: Session, names: Sequence[str], *, all_projects: bool) -> None:
        self._session, self._names = session, names
        self._all = all_projects
        self._scheduler: Row = {}

    def read(self) -> Fleet:
        api = self._session.api
        self._scheduler = api.get("/scheduler")
        agents = [
            read_agent(row)
            for row in api.pages("/agents", "agents", all=self._all)
            if not self._names or row["name"] in self._names
        ]
        return Fleet(read_scheduler(self._scheduler), agents, self._workers())

    def parts(self, fleet: Fleet, now: datetime) -> Sequence[Part]:
        missing = self._scheduler["missing_processes"]
        problem = self._scheduler["schema_problem"]
        return fleet_parts(fleet, now, missing=missing, schema_problem=problem)

    def _workers(self) -> list[WorkerStatus]:
        try:
            return [read_worker(row) for row in self._session.api.get("/workers")["workers"]]
        except NotAllowed:
            # Workers serve all tenants: a token of another tenant does not see them.
            return []


def stat(
    session: Session, *, agents: list[str], watch: bool, every: str, json: bool, **options: Any
) -> int:
    # An agent that is named is shown, wherever its directory was.
    names = [str(session.agent(name)["name"]) for name in agents]
    reader = RemoteFleet(session, names, all_projects=options["all"] or bool(names))
    if watch:
        watch_fleet(session.screen, reader.read, reader.parts, interval_of(every), json=json)
    elif json:
        session.screen.json(reader.read())
    else:
        session.screen.show(reader.parts(reader.read(), session.now))
    return 0
