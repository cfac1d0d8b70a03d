"""An arena for each test: a database of its own and processes that race on it."""

from collections.abc import Iterator

import pytest

from tests.races.arena import Arena


@pytest.fixture
def arena(new_stack) -> Iterator[Arena]:
    place = Arena(new_stack())
    yield place
    place.close()
