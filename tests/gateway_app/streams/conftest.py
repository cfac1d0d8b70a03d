"""A real gateway, and journal entries that are written without it."""

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.gateway_app.streams.client import NOTIFICATIONS, Stream, listen
from tests.parts.stack_part import PrivateStack

# The ids of entries are committed out of order on PostgreSQL only.
collect_ignore = (
    [] if os.environ.get("DROVER_TEST_DATABASE") == "postgres" else ["test_out_of_order.py"]
)
SKILL = '---\ndescription: Says hello\ncommand: ["true"]\nscale: 2\n---\nSay hello.\n'
ENTRY = (
    "INSERT INTO drover_run_event (tenant_id, agent_id, run_id, name, at, detail) "
    "VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
)


# One process instead of many, each of which takes a second.
SETTLE = """
import json
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from datetime import UTC, datetime
from agents_app.conf import CONF
from agents_app.models import Tenant
from agents_app.project.sync import sync_project
from agents_app.accounts.tenants import create_tenant
from agents_app.accounts.tokens import create_token
now = datetime.now(UTC)
sync_project(CONF.project, now)
create_tenant("acme", "a test", now)
tenants = [Tenant.objects.get(name=name) for name in ("default", "acme")]
wanted = [(tenants[0], "read"), (tenants[1], "read"), (tenants[0], "admin")]
tokens = [create_token(tenant, "test", scope, "a test", now).secret for tenant, scope in wanted]
browser = Client()
browser.force_login(User.objects.create_superuser("ann", password="secret"))
session = browser.cookies[settings.SESSION_COOKIE_NAME]
cookie = f"{session.key}={session.value}"
print(json.dumps({"tenants": {t.name: t.pk for t in tenants}, "tokens": tokens, "cookie": cookie}))
"""


class Gateway:
    """A gateway with two tenants. No other process runs: a test writes all that happens."""

    def __init__(self, stack: PrivateStack) -> None:
        self.stack = stack
        self.port = stack.conf.port
        made = json.loads(self.made("shell", "--no-imports", "-c", SETTLE))
        self.tenants: dict[str, int] = made["tenants"]
        self.token, self.theirs, self.boss = made["tokens"]
        self.cookie: str = made["cookie"]

    def made(self, *command: str) -> str:
        done = self.stack.manage(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Sends an API request with the token of an admin."""
        request = urllib.request.Request(
            f"{self.stack.url}/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.boss}"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

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


@pytest.fixture(scope="package")
def new_gateway(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[NewGateway]:
    """Keyword arguments become variables; all end with the package."""
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


@pytest.fixture(scope="package")
def gateway(new_gateway: NewGateway) -> Gateway:
    return new_gateway(DROVER_STREAM_HEARTBEAT_SECONDS="0.5")
