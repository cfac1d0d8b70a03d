"""What failed and passed when repeated is named and counted; suites are run by a real pytest."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parts.run_suite import (
    MOST_REPEATED,
    Pass,
    SuiteResult,
    closing_lines,
    exit_status,
    may_mount,
    parse,
)

CHECKOUT = Path(__file__).resolve().parents[2]
PASSES = "def test_that_passes():\n    pass\n"
FAILS = "def test_that_fails():\n    assert 1 == 2\n"
SKIPPED = "import pytest\n\n@pytest.mark.skip\ndef test_that_is_skipped():\n    pass\n"
FLAKY = """
from os import environ
from pathlib import Path

def test_flaky():
    seen = Path(__file__ + environ["DROVER_TEST_DATABASE"])
    failed_before = seen.exists()
    seen.touch()
    assert failed_before
"""
FLAKY_FIXTURE = """
import pytest
from pathlib import Path

@pytest.fixture
def fixture():
    yield
    seen = Path(__file__ + ".seen")
    failed_before = seen.exists()
    seen.touch()
    assert failed_before

def test_with_fixture(fixture):
    pass
"""


@dataclass
class MadeUpSuite:
    """Test files in a directory of their own, run as `make test` runs those of Drover."""

    directory: Path

    def run(self, *suites: str, **files: str) -> tuple[int, list[str]]:
        """The exit status, and the lines that the runner prints after the last pytest."""
        (self.directory / "pytest.ini").write_text("[pytest]\n")
        for name, text in files.items():
            (self.directory / f"{name}.py").write_text(text)
        groups = [part for suite in suites or ("sqlite",) for part in ("--", *suite.split())]
        done = subprocess.run(
            [sys.executable, "-m", "tests.parts.run_suite", "--processes", "1", *groups],
            cwd=self.directory,
            # Other plugins take longer to load than these suites take to run.
            env={
                **{"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)},
                **{"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.output = done.stdout
        return done.returncode, done.stdout.rpartition("\n\n")[2].splitlines()


@pytest.fixture
def suite(tmp_path: Path) -> MadeUpSuite:
    return MadeUpSuite(tmp_path)


def test_a_suite_that_passes_is_run_once_and_says_what_took_longest(suite):
    slow = "import time\n\ndef test_slow():\n    time.sleep(0.1)\n"
    status, lines = suite.run(test_a=PASSES, test_b=SKIPPED, test_c=slow)
    assert status == 0
    assert lines[1:] == [
        "0 failed first and passed when repeated",
        "2 passed, 0 failed, 1 skipped",
    ]
    assert suite.output.count("test session starts") == 1
    assert "slowest 15 durations" in suite.output
    assert "test_c.py::test_slow" in suite.output


def test_temporary_files_are_in_memory_where_the_runner_may_mount(suite):
    mounted = f"""
import tempfile
from pathlib import Path

def test_mounted(tmp_path):
    assert Path(tempfile.gettempdir()).is_mount() is {may_mount()}
    assert tmp_path.is_relative_to(tempfile.gettempdir())
"""
    assert suite.run(test_a=mounted)[0] == 0, suite.output


def test_a_test_that_passes_when_repeated_is_named_and_counted_and_passes(suite):
    """A fixture that fails after its test is a failure of the test."""
    status, lines = suite.run(test_a=PASSES, test_b=FLAKY, test_c=FLAKY_FIXTURE)
    assert status == 0
    assert lines[0].startswith("sqlite: 3 tests in ")
    assert ", 2 repeated in " in lines[0]
    assert lines[1:] == [
        "2 failed first and passed when repeated",
        "  sqlite: test_b.py::test_flaky",
        "  sqlite: test_c.py::test_with_fixture",
        "3 passed, 0 failed",
    ]


def recovered(database: str, *names: str) -> SuiteResult:
    """A suite of one test that passed and these, which passed only when repeated."""
    first = {"passes": "passed"} | dict.fromkeys(names, "failed")
    return SuiteResult(database, Pass(1, 1, first), Pass(0, 1, dict.fromkeys(names, "passed")))


def test_more_than_two_that_pass_when_repeated_fail_the_run():
    assert exit_status([recovered("sqlite", "a", "b")]) == 0
    results = [recovered("sqlite", "a", "b", "c")]
    assert exit_status(results) == 1
    assert closing_lines(results)[1:] == [
        "3 failed first and passed when repeated",
        *(f"  sqlite: {name}" for name in "abc"),
        "these count as failed, because they are more than 2",
        "1 passed, 3 failed",
    ]


def test_the_limit_holds_for_all_databases_together():
    results = [recovered("sqlite", "a", "b"), recovered("postgres", "a")]
    assert exit_status(results) == 1
    lines = closing_lines(results)
    assert [line.partition(":")[0] for line in lines[:2]] == ["sqlite", "postgres"]
    assert lines[2:] == [
        "3 failed first and passed when repeated",
        *("  sqlite: a", "  sqlite: b", "  postgres: a"),
        "these count as failed, because they are more than 2",
        "2 passed, 3 failed",
    ]


def test_a_test_that_fails_twice_fails_the_run_and_the_next_database_is_still_tested(suite):
    status, lines = suite.run("sqlite", "postgres", test_a=FAILS, test_b=FLAKY)
    assert status == 1
    assert lines[2:] == [
        "2 failed and did not pass when repeated",
        "  sqlite: test_a.py::test_that_fails",
        "  postgres: test_a.py::test_that_fails",
        "2 failed first and passed when repeated",
        "  sqlite: test_b.py::test_flaky",
        "  postgres: test_b.py::test_flaky",
        "2 passed, 2 failed",
    ]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("import missing_module\n", "not collected: test_b.py"),
        ("import os\n\ndef test_a(): os.kill(os.getppid(), 2)\n", "pytest ended with status 2"),
    ],
    ids=["collection", "interrupt"],
)
def test_a_first_pass_that_breaks_off_fails_the_run_and_nothing_is_repeated(suite, broken, why):
    status, lines = suite.run("sqlite", "postgres", test_b=broken, test_c=FLAKY)
    assert status == 1
    assert f"broken off: {why}" in lines[0]
    assert suite.output.count("test session starts") == 1
    passed, failed = lines[-1].split(", ")
    assert passed == "0 passed"
    assert int(failed.split()[0]) >= 1


def test_a_suite_without_tests_fails_the_run(suite):
    status, lines = suite.run("sqlite")
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")
    assert "broken off: pytest ended with status 5" in lines[0]


def test_too_many_failures_are_not_repeated(suite):
    many = "\n".join(f"def test_{n}():\n    assert False\n" for n in range(MOST_REPEATED + 1))
    status, lines = suite.run(test_a=many)
    assert (status, lines[-1]) == (1, f"0 passed, {MOST_REPEATED + 1} failed")
    assert suite.output.count("test session starts") == 1


def test_arguments_of_a_suite_reach_both_passes(suite):
    status, lines = suite.run("sqlite -k flaky", test_a=FAILS, test_b=FLAKY)
    assert (status, lines[-1]) == (0, "1 passed, 0 failed")


def test_arguments_without_a_database_are_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--processes", "2", "--"])
    assert "a database is expected" in capsys.readouterr().err
