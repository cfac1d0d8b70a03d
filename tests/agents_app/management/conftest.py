"""What the tests of the commands share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.conf import CONF
from tests.agents_app.fleet import Fleet
from tests.parts.redis_part import RedisServer

# What a shell makes of a command is the same on any database; the others of these are on both.
collect_ignore = (
    ["test_with_a_worker.py"] if os.environ.get("DROVER_TEST_DATABASE") == "postgres" else []
)


@pytest.fixture
def durable_fleet(durable_fleet: Fleet, broker: RedisServer) -> Fleet:
    """With a Redis: without one every command would wait a while to get its hints out."""
    return durable_fleet


@pytest.fixture
def project() -> Iterator[Path]:
    """The project of this process, empty again afterwards."""
    CONF.project.mkdir(parents=True, exist_ok=True)
    yield CONF.project
    for entry in CONF.project.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def write_agent(project: Path, name: str, skill: str) -> None:
    directory = project / "agents" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "SKILL.md").write_text(skill)
