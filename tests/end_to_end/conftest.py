"""Whole stacks as `manage.py up` starts them."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.faults.real_fleet import QUICK, RealFleet
from tests.parts.stack_part import PrivateStack

NewFleet = Callable[[], RealFleet]


@pytest.fixture
def new_fleet(tmp_path: Path, migrated_database: Callable[[Path], str]) -> Iterator[NewFleet]:
    """Private installations with a migrated database and no running process."""
    made: list[RealFleet] = []

    def make() -> RealFleet:
        directory = tmp_path / f"fleet{len(made)}"
        stack = PrivateStack(directory, migrated_database(directory / "data"), **QUICK)
        made.append(RealFleet(stack))
        return made[-1]

    yield make
    for fleet in made:
        fleet.close()


@pytest.fixture(scope="module")
def examples(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[PrivateStack]:
    """`up` with a copy of the repository's examples."""
    directory = tmp_path_factory.mktemp("examples")
    stack = PrivateStack(directory, migrated_database(directory / "data"), **QUICK)
    shutil.copytree(ROOT / "examples", stack.project, dirs_exist_ok=True)
    with stack:
        up = stack.up()
        yield stack
        # Twice: the suite must not wait for an example with a long run.
        for _ in range(2):
            up.send_signal(signal.SIGINT)
            time.sleep(0.5)
