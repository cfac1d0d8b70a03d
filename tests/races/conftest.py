"""An arena for each test: a private database and processes that use it concurrently."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.conf import database_settings
from tests.parts.stack_part import PrivateStack
from tests.races.arena import Arena, Starter


@pytest.fixture(scope="session")
def starter(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[Starter]:
    directory = tmp_path_factory.mktemp("races") / "stack"
    only = Starter(PrivateStack(directory, migrated_database(directory / "data")))
    yield only
    only.close()


@pytest.fixture
def arena(
    starter: Starter, tmp_path: Path, migrated_database: Callable[[Path], str]
) -> Iterator[Arena]:
    url = migrated_database(tmp_path / "arena")
    arena = Arena(starter, database_settings(url)["NAME"], tmp_path)
    yield arena
    arena.close()
