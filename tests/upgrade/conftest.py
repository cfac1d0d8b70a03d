"""Databases of version 0.1.0, migrated by this version; and Drover running on them."""

import gzip
import hashlib
import hmac
import json
import re
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.parts.postgres_part import PostgresServer
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for
from tests.upgrade.answers import Answers, Client, read_answers
from tests.upgrade.facts import STATES, count_rows, count_states, read_output, read_rows

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "data" / "expected.json").read_text())
PROCESSES = ("redis", "gateway", "worker-1")
SEALED = (
    "SELECT t.name AS tenant, c.tenant_id, c.type, c.instance, c.sealed "
    "FROM drover_credential c JOIN drover_tenant t ON t.id = c.tenant_id"
)
# The columns of a work item that name the row it was created for, by the kind of that row.
PROVENANCE = {
    "delivery": "delivery_id",
    "rule": "rule_id",
    "rerun": "rerun_of_id",
    "call": "parent_run_id",
    "firing": "firing_id",
}

# doctor exits with 1, because no beat is alive.
CALL_COMMANDS = """
import io, json
from contextlib import suppress
from django.core.management import call_command
said = {}
for name, arguments in commands.items():
    out = io.StringIO()
    with suppress(SystemExit):
        call_command(*arguments, "--json", stdout=out)
    said[name] = out.getvalue()
print(json.dumps(said))
"""


@dataclass(repr=False)
class Upgraded:
    """A migrated database, and what was read from it before anything new ran."""

    expected: Row
    stack: PrivateStack
    counts: dict[str, int] = field(default_factory=dict)
    states: dict[str, dict[str, int]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    output: dict[str, Row] = field(default_factory=dict)
    credentials: list[Row] = field(default_factory=list)
    work: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    commands: dict[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        rows = self.stack.rows
        self.counts = count_rows(rows)
        self.states = {table: count_states(rows, table) for table in STATES}
        self.rows = read_rows(rows)
        self.output = read_output(rows)
        self.credentials = rows(SEALED)
        self.work = rows(f"SELECT id, {', '.join(PROVENANCE.values())} FROM drover_work_item")
        self.events = rows("SELECT name, detail, actor FROM drover_run_event")

    def ask_commands(self) -> None:
        self.commands = self._ask(
            doctor=["doctor", "--invariants"],
            schedules=["schedule", "list", "--limit", "1000"],
            deliveries=["deliveries", "list", "--limit", "1000"],
            log=["logs", self.run_of("counter")],
        )

    def run_of(self, agent: str, **wanted: str) -> str:
        """The id of the first run of an agent of the tenant `default`."""
        wanted |= {"agent": agent}
        runs = self.expected["answers"]["operator"]["runs"]
        found = (run["id"] for run in runs.values() if wanted.items() <= run.items())
        return str(min(found))

    def _ask(self, **commands: list[str]) -> dict[str, Any]:
        """The --json output of the commands. One process runs all: starting one takes a second."""
        code = f"commands = {commands!r}\n{CALL_COMMANDS}"
        done = self.stack.manage("shell", "--no-imports", "-c", code)
        assert done.returncode == 0, done.stderr
        return {name: json.loads(text) for name, text in json.loads(done.stdout).items()}


def restore_sqlite(path: Path) -> str:
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress((HERE / "data" / "drover-0.1.0.sqlite3.gz").read_bytes()))
    return f"sqlite:///{path}"


def restore_postgres(server: PostgresServer) -> str:
    url = server.new_database()
    dump = gzip.decompress((HERE / "data" / "drover-0.1.0.pgdump.sql.gz").read_bytes())
    with psycopg.connect(url) as connection:
        connection.execute(dump)
    return url


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgraded]:
    directory = tmp_path_factory.mktemp("upgrade") / "stack"
    if request.param == "sqlite":
        url = restore_sqlite(directory / "data" / "drover.sqlite3")
    else:
        url = restore_postgres(request.getfixturevalue("postgres"))
    # The password of the user `admin` must come from the database.
    env = {**EXPECTED["secrets"], "DROVER_ADMIN_PASSWORD": ""}
    with PrivateStack(directory, url, **env) as stack:
        shutil.copytree(HERE / "fleet", stack.project, dirs_exist_ok=True)
        # The system checks take longer than the migrations, and doctor does them as well.
        done = stack.manage("migrate", "--skip-checks", "--verbosity", "0", seconds=300)
        assert done.returncode == 0, done.stderr
        made = Upgraded(EXPECTED[request.param], stack)
        made.read()
        with ThreadPoolExecutor() as threads:
            commands = threads.submit(made.ask_commands)
            for name in PROCESSES:
                stack.start(name)
        commands.result()
        yield made


class Running:
    """Worker and gateway on a migrated database, and what the API said before anything new ran."""

    def __init__(self, upgraded: Upgraded) -> None:
        self.upgraded = upgraded
        self.stack = upgraded.stack
        self.answers: dict[str, Answers] = {
            token: read_answers(self.client(token)) for token in ("operator", "acme")
        }
        # Beat would read the new project directory, but it would also fire overdue schedules and
        # remove old rows, so it is not started and the directories are changed here.
        moved = "UPDATE drover_agent SET directory = replace(directory, '/srv/drover/project', ?)"
        self.stack.rows(moved, str(self.stack.project))
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def client(self, token: str) -> Client:
        return Client(self.stack.url, self.upgraded.expected["tokens"][token])

    def ended_runs(self, condition: str, count: int) -> list[Row]:
        """The runs that a condition on run `r` and agent `a` finds, once so many have succeeded."""
        sql = (
            "SELECT r.* FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id "
            f"WHERE r.state = 'succeeded' AND {condition} ORDER BY r.id"
        )

        def enough() -> list[Row]:
            found = self.stack.rows(sql)
            return found if len(found) >= count else []

        return wait_for(enough, 20, lambda: self.stack.log("worker-1"))

    def deliver(self, secret: str, key: str, body: bytes) -> Any:
        """Posts an `issues` event, signed as GitHub signs it; returns the answer."""
        mac = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-GitHub-Event": "issues", "X-GitHub-Delivery": key}
        headers |= {"X-Hub-Signature-256": f"sha256={mac}", "Content-Type": "application/json"}
        url = f"{self.stack.url}/webhooks/github/repo"
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=20) as said:
            return json.loads(said.read())

    def log_in(self) -> str:
        """Logs in with the password that version 0.1.0 stored; returns the next page."""
        path = "/admin/login/?next=/admin/"
        asked = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.page(path))
        assert asked is not None
        password = EXPECTED["secrets"]["DROVER_ADMIN_PASSWORD"]
        form = {"username": "admin", "password": password, "csrfmiddlewaretoken": asked[1]}
        return self.page(path, urllib.parse.urlencode(form).encode())

    def page(self, path: str, form: bytes | None = None) -> str:
        with self._opener.open(f"{self.stack.url}{path}", form, timeout=20) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def running(upgraded: Upgraded) -> Running:
    return Running(upgraded)


@pytest.fixture(scope="module")
def page(running: Running) -> Callable[[str], str]:
    """Returns pages of the admin as HTML, for the user `admin`."""
    assert "logout" in running.log_in()
    return running.page
