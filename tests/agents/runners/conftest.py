"""Fixtures of the runner tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.agents.runners.programs import Program, Shell
from tests.parts.processes import is_gone


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Makes a run of a shell script, not yet started."""

    def make(script: str, **options: object) -> Program:
        return Program(tmp_path, "/bin/sh", "-c", script, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    """No descriptor, no child and no zombie more than before."""
    fds_before, children_before = open_fds(), children()
    yield
    assert open_fds() - fds_before == set()
    assert children() - children_before == set()


def open_fds() -> set[str]:
    """What the descriptors point to, without the family's one lasting view of its children."""
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


__all__ = ["children", "is_gone", "nothing_leaks", "open_fds", "shell"]
