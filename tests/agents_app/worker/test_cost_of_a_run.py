"""What one more run costs, in exact numbers, so that no feature adds to every run unnoticed.

The numbers may be changed with a reason in the commit; lower ones are welcome.
"""

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db.backends.signals import connection_created

from agents_app.database import ENGINE, transactions
from agents_app.models import Run
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.fleet import NOON, Fleet, live_run

FEW, MANY = 5, 15
SQL = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}
FILES = {"os.mkdir", "os.rmdir", "os.rename", "os.remove", "os.listdir", "os.scandir"}
# One statement of PostgreSQL is a transaction of its own.
OF_DATABASE = {
    "sqlite": Counter({"statements": 8, "commits": 1}),
    "postgresql": Counter({"statements": 1}),
}
ALWAYS = Counter(
    {
        "os.rename": 2,
        "os.listdir": 4,
        "os.remove": 2,
        "files created": 1,
        "subprocess.Popen": 1,
        "log lines": 2,
    }
)


class Costs:
    """Counts events of this process while it is `counting`."""

    def __init__(self) -> None:
        self.counting = False
        self.found: Counter[str] = Counter()

    def add(self, name: str) -> None:
        if self.counting:
            self.found[name] += 1

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.counting:
            return
        if event in FILES or event in {"subprocess.Popen", "_thread.start_new_thread"}:
            self.found[event] += 1
        elif event == "open" and isinstance(arguments[0], str) and arguments[2] & os.O_CREAT:
            self.found["files created"] += 1

    def statement(self, text: str) -> None:
        word = text.split(None, 1)[0].upper()
        if word in SQL:
            self.add("statements")
        elif word == "COMMIT":
            self.add("commits")


COSTS = Costs()


class _Lines(logging.Handler):
    def emit(self, _record: logging.LogRecord) -> None:
        COSTS.add("log lines")


@pytest.fixture(scope="module", autouse=True)
def audited() -> None:
    """For the rest of the process: an audit hook cannot be removed."""
    sys.addaudithook(COSTS.audit)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lines = _Lines()
    logging.getLogger("drover").addHandler(lines)
    if ENGINE.name == "sqlite":
        connection_created.connect(_trace)
        # Its next connection is a new one.
        transactions._writer.stop()
    else:
        execute_of_psycopg, commit = psycopg.Cursor.execute, psycopg.Connection.commit

        def count_execute(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            COSTS.statement(str(query))
            return execute_of_psycopg(cursor, query, *arguments, **options)

        def count_commit(connection: Any) -> None:
            COSTS.add("commits")
            commit(connection)

        monkeypatch.setattr(psycopg.Cursor, "execute", count_execute)
        monkeypatch.setattr(psycopg.Connection, "commit", count_commit)
    yield
    connection_created.disconnect(_trace)
    logging.getLogger("drover").removeHandler(lines)
    if ENGINE.name == "sqlite":
        transactions._writer.stop()


def _trace(connection: Any, **_: Any) -> None:
    connection.connection.set_trace_callback(COSTS.statement)


@contextmanager
def counting() -> Iterator[None]:
    COSTS.found.clear()
    COSTS.counting = True
    try:
        yield
    finally:
        COSTS.counting = False


def _cost(fleet: Fleet, runs: int) -> Counter[str]:
    agent = fleet.agent(f"agent-{runs}", command=["/bin/true"])
    first, *_ = (fleet.enqueue(agent) for _ in range(runs))
    run = live_run(first)
    host = Host(fleet.worker(name=f"worker-{runs}").pk, lambda: NOON)
    with counting():
        assert execute.execute(run.pk, host) == runs
    assert Run.objects.filter(agent=agent, state="succeeded").count() == runs
    return Counter(COSTS.found)


def test_one_more_run_of_an_agent_costs_exactly_this(durable_fleet: Fleet):
    _cost(durable_fleet, 2)  # what is done once in a process
    few, many = _cost(durable_fleet, FEW), _cost(durable_fleet, MANY)
    more = {name: (many[name] - few[name]) / (MANY - FEW) for name in many.keys() | few.keys()}
    assert {name: value for name, value in more.items() if value} == (
        OF_DATABASE[ENGINE.name] + ALWAYS
    )
