"""The Python programs of the documentation are executed, without Redis."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents_app.conf import ROOT
from tests.docs.pages import Sample, samples
from tests.parts.fixtures import NewDatabase

STATE = "scheduler-state"
PRINTED = {
    "greeter": "running\nTrue\nstopped\nsucceeded 0\n",
    "reporter": "reporter daily Report.\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample", [sample for sample in samples("python") if not sample.is_left_out], ids=str
)
def test_a_program_of_the_documentation_prints_what_it_says(
    sample: Sample, tmp_path: Path, migrated_database: NewDatabase
):
    (expected,) = (text for name, text in PRINTED.items() if f'"{name}"' in sample.text)
    if "on_trigger" in sample.text:
        migrated_database(tmp_path / STATE)  # creating all tables takes seconds; the other does it
    (tmp_path / "program.py").write_text(sample.text)
    paths = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**paths, "PYTHONPATH": str(ROOT), "REDIS_URL": "redis://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected
