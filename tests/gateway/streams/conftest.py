"""A real gateway of a module, and somebody who writes the journal behind its back."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.streams.client import NOTIFICATIONS, Stream, listen
from tests.parts.stack_part import PrivateStack

# What only one database can suffer from is collected on that one.
collect_ignore = (
    [] if os.environ.get("DROVER_TEST_DATABASE") == "postgres" else ["test_out_of_order.py"]
)
SKILL = '---\ndescription: Says hello\ncommand: ["true"]\nscale: 2\n---\nSay hello.\n'
ENTRY = (
    "INSERT INTO drover_run_event (tenant_id, agent_id, run_id, name, at, detail) "
    "VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
)


class Gateway:
    """With two tenants; nothing else runs, so nothing happens but what a test writes."""

    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self.port = stack.conf.port
        self.made("discover", "--sync")
        self.made("tenant", "create", "acme")
        self.tenants = {row["name"]: row["id"] for row in stack.rows("SELECT * FROM drover_tenant")}
        self.token = self.new_token("default")
        self.theirs = self.new_token("acme")

    def made(self, *command: str) -> str:
        done = self.stack.manage(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def new_token(self, tenant: str, scope: str = "read") -> str:
        return self.made("token", "create", "test", "--scope", scope, "--tenant", tenant)

    def listen(self, path: str = NOTIFICATIONS, **options: Any) -> Stream:
        return listen(self.port, self.token, path, **options)

    def tell(self, name: str, run_id: int | None = None, **columns: Any) -> int:
        """An entry of the journal, committed; its id."""
        (row,) = self.stack.rows(ENTRY, *self.columns(name, run_id, **columns))
        return int(row["id"])

    def columns(
        self, name: str, run_id: int | None = None, tenant: str = "default", detail: str = ""
    ) -> list[Any]:
        at: Any = datetime.now(UTC)
        if self.stack.database_url.startswith("sqlite"):
            at = at.isoformat(" ")[:-6]
        return [self.tenants[tenant], None, run_id, name, at, detail]


NewGateway = Callable[..., Gateway]


@pytest.fixture(scope="module")
def new_gateway(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[NewGateway]:
    """Keyword arguments become variables; all end with the module."""
    made: list[PrivateStack] = []

    def make(**env: str) -> Gateway:
        directory = tmp_path_factory.mktemp("gateway")
        url = migrated_database(directory / "data")
        made.append(PrivateStack(directory, url, DROVER_API_RATE="100000", **env))
        made[-1].write_agent("hello", SKILL)
        gateway = Gateway(made[-1])
        made[-1].start("gateway")
        return gateway

    yield make
    for stack in made:
        stack.close()


@pytest.fixture(scope="module")
def gateway(new_gateway: NewGateway) -> Gateway:
    return new_gateway(DROVER_STREAM_HEARTBEAT_SECONDS="0.5")
