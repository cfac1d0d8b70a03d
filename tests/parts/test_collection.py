"""Test files for one database are left out on the other one, also if they are named directly."""

import os
import subprocess
import sys

import pytest

from agents_app.conf import ROOT


@pytest.mark.parametrize(
    ("database", "path"),
    [
        ("sqlite", "tests/agents_app/runs/test_handover.py"),
        ("postgres", "tests/faults/test_sqlite_locked.py"),
    ],
)
def test_a_named_file_for_the_other_database_is_not_run(database: str, path: str):
    """Guard: pytest ignores `collect_ignore` for files that are named on the command line."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", path],
        cwd=ROOT,
        env=env | {"DROVER_TEST_DATABASE": database},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
    assert "deselected" in done.stdout
