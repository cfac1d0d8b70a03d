"""Fixtures of the runner tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from agents_app.runners.promises import this_kernel
from tests.agents_app.runners.containers import Contained, NewContained
from tests.agents_app.runners.programs import Program, Shell
from tests.parts.missing import missing

if TYPE_CHECKING:
    from tests.parts.docker_part import DockerEngine


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Makes a run of a shell script, not yet started; what a failed test left running ends."""
    made: list[Program] = []

    def make(script: str, timeout: float = 30.0, grace: float = 10.0) -> Program:
        made.append(Program(tmp_path, "/bin/sh", "-c", script, timeout=timeout, grace=grace))
        return made[-1]

    yield make
    for program in made:
        program.control.stop("the test is over", grace_seconds=0)
        program.join()


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    """No descriptor, no child and no zombie more than before."""
    fds_before, children_before = open_fds(), children()
    yield
    assert open_fds() - fds_before == set()
    assert children() - children_before == set()


def open_fds() -> set[str]:
    """What the descriptors point to, without the list of children that is kept open."""
    links = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if not link.endswith("/children"):
            links.add(f"{name}:{link}")
    return links


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


@pytest.fixture
def contained(tmp_path: Path, docker_engine: "DockerEngine") -> Iterator[NewContained]:
    """Makes a run of a shell script in a container, not yet started."""
    made: list[Contained] = []

    def make(script: str, **options: Any) -> Contained:
        argv = options.pop("argv", ("sh", "-c", script))
        made.append(Contained(tmp_path, docker_engine, *argv, **options))
        return made[-1]

    yield make
    for program in made:
        program.control.stop("the test is over", grace_seconds=0)
        program.join()
        program.remove_kept()
        assert program.left() == []


@pytest.fixture
def landlock() -> None:
    if this_kernel().missing:
        missing("a kernel with Landlock 6", "use Linux 6.12 or newer")
