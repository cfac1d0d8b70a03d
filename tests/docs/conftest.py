"""One running Drover for all commands of the documentation, in a directory like a checkout."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.docs.documented import DocumentedFleet
from tests.parts.stack_part import PrivateStack

FLEET = Path(__file__).parent / "fleet"
_NOT_LINKED = {".git", ".venv", "my-fleet", "site", "var"}


@pytest.fixture(scope="module")
def documented_fleet(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[DocumentedFleet]:
    directory = tmp_path_factory.mktemp("docs")
    checkout = directory / "checkout"
    checkout.mkdir()
    for path in ROOT.iterdir():
        if path.name not in _NOT_LINKED:
            (checkout / path.name).symlink_to(path)
    (checkout / ".venv").symlink_to(sys.prefix)
    project = checkout / "my-fleet"
    shutil.copytree(FLEET, project)
    stack = PrivateStack(
        directory,
        migrated_database(directory / "data"),
        DROVER_PROJECT=str(project),
        GITHUB_WEBHOOK_SECRET="a secret of the documentation",
    )
    fleet = DocumentedFleet(stack, checkout)
    fleet.write_agents_of_samples()
    with stack:
        up = stack.up()
        yield fleet
        for _ in range(2):
            up.send_signal(signal.SIGINT)
            time.sleep(0.5)
