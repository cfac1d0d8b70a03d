"""Both engines, each on a real database with one table; whatever DROVER_TEST_DATABASE says."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from agents_app.conf import database_settings
from agents_app.database.engine import Engine
from agents_app.database.postgres import PostgresEngine
from agents_app.database.sqlite import SqliteEngine
from tests.agents_app.database.item_table import CREATE, Elsewhere


@pytest.fixture(scope="module", params=[SqliteEngine, PostgresEngine], ids=lambda each: each.name)
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any
) -> Iterator[Engine]:
    engine: Engine = request.param(f"conformance_{request.param.name}")
    url = (
        request.getfixturevalue("postgres").new_database()
        if engine.name == "postgresql"
        else f"sqlite:///{tmp_path_factory.mktemp('conformance')}/file.sqlite3"
    )
    made = connections.configure_settings({"default": database_settings(url)})["default"]
    connections.settings[engine.alias] = made
    with django_db_blocker.unblock():
        engine.execute(CREATE[engine.name], [])
        yield engine
        connections[engine.alias].close()
    # The next file has another database of the same alias.
    del connections[engine.alias]
    del connections.settings[engine.alias]


@pytest.fixture
def engine(database: Engine) -> Engine:
    """With an empty table whose ids begin anew."""
    database.execute("DELETE FROM item", [])
    return database


@pytest.fixture
def elsewhere(engine: Engine) -> Iterator[Elsewhere]:
    other = Elsewhere(engine)
    yield other
    other.close()
