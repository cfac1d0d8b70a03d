"""Every command of the documentation is executed on a running Drover."""

from pathlib import Path

import pytest

from tests.docs.documented import (
    DocumentedFleet,
    pages_with_commands,
    samples_inside_runs,
)
from tests.docs.pages import title

# Fifty commands, each a process of its own.
pytestmark = pytest.mark.slow
INSIDE = samples_inside_runs()


@pytest.mark.parametrize("page", pages_with_commands(), ids=title)
def test_the_commands_of_a_page_succeed(page: Path, documented_fleet: DocumentedFleet):
    done = documented_fleet.run_page(page)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize(
    "agent", samples_inside_runs(), ids=lambda n: str(samples_inside_runs()[n])
)
def test_the_commands_of_a_run_succeed(agent: str, documented_fleet: DocumentedFleet):
    done = documented_fleet.stack.manage("run", agent, "--wait")
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_a_command_that_fails_is_noticed(documented_fleet: DocumentedFleet):
    """The check above can fail: a shell stops at the first command that does."""
    assert documented_fleet.run("python manage.py run unknown\ntrue\n").returncode == 1
