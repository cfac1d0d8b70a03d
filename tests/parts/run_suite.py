"""Runs the tests on one database after the other and repeats once what failed.

`python -m tests.parts.run_suite [--processes N] -- DATABASE [PYTEST ARGUMENT ...] [-- ...]`

A test that fails and then passes does not fail the run, because some tests wait for real processes
on a busy machine. It is named and counted in the last lines, and more than two of them in the whole
run fail it. The last line counts all tests.

Temporary files are in memory where this process may mount: otherwise every commit of a test waits
for the disk, which took half of the time. The mount is in a namespace of its own and ends with it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

USAGE = "%(prog)s [--processes N] -- DATABASE [PYTEST ARGUMENT ...] [-- ...]"
MOST_RECOVERED = 2
# With more failures something is broken, and to repeat them one at a time takes too long.
MOST_REPEATED = 20
# More than there are cores, because most tests wait for a process or a disk. On PostgreSQL each
# process starts a server of its own.
PROCESSES = {"sqlite": 6, "postgres": 5}
# A file is run by one process. Files are not reordered by their number of tests: tests/conftest.py
# puts those first that take longest.
FIRST_PASS = ("--dist", "loadfile", "--no-loadscope-reorder", "--durations=15")
SECOND_PASS = ("--last-failed", "--last-failed-no-failures", "none")
# $0 is the directory, $@ the command to run.
MOUNT = 'mount -t tmpfs -o mode=1777 drover-tests "$0" && TMPDIR="$0" exec "$@"'
IN_MEMORY = "DROVER_TESTS_IN_MEMORY"
COMPLETE = (0, 1)  # all passed, or some failed; pytest's other statuses say why it stopped


@dataclass(frozen=True)
class Suite:
    """Tests to run on one database."""

    database: str
    arguments: Sequence[str]


@dataclass(frozen=True)
class Pass:
    """What one pytest process reported."""

    status: int
    seconds: float
    tests: dict[str, str] = field(default_factory=dict)
    collection_errors: Sequence[str] = ()

    @property
    def failed(self) -> list[str]:
        return [test for test, outcome in self.tests.items() if outcome == "failed"]

    @property
    def broke_off(self) -> str:
        """Why not all tests were run; empty if they were."""
        if self.collection_errors:
            return f"not collected: {', '.join(self.collection_errors)}"
        if self.status not in COMPLETE or bool(self.status) != bool(self.failed):
            return f"pytest ended with status {self.status}, {len(self.failed)} tests failed"
        return ""


@dataclass(frozen=True)
class SuiteResult:
    """What became of the tests of a suite after the second pass."""

    database: str
    first: Pass
    second: Pass | None = None

    @property
    def recovered(self) -> list[str]:
        """Tests that failed first and passed when they were repeated."""
        repeated = self.second.tests if self.second else {}
        return [test for test in self.first.failed if repeated.get(test) == "passed"]

    @property
    def failed(self) -> list[str]:
        return [test for test in self.first.failed if test not in self.recovered]

    @property
    def counts(self) -> Counter[str]:
        found = Counter(self.first.tests.values())
        found["passed"] += len(self.recovered)
        found["failed"] -= len(self.recovered)
        # What was not collected or not run is not known to pass.
        if self.first.broke_off:
            found["failed"] += max(1, len(self.first.collection_errors))
        return found

    @property
    def summary(self) -> str:
        text = f"{self.database}: {len(self.first.tests)} tests in {self.first.seconds:.0f} s"
        if self.second is not None:
            text += f", {len(self.first.failed)} repeated in {self.second.seconds:.0f} s"
        return text + (f"; broken off: {self.first.broke_off}" if self.first.broke_off else "")


def run_suite(suite: Suite, processes: int) -> SuiteResult:
    """The tests in several processes, then those that failed in one."""
    first = run_pytest(suite, ["--numprocesses", str(processes), *FIRST_PASS])
    if first.broke_off or not first.failed:
        return SuiteResult(suite.database, first)
    if len(first.failed) > MOST_REPEATED:
        _say(f"{suite.database}: not repeated, because more than {MOST_REPEATED} tests failed")
        return SuiteResult(suite.database, first)
    _say(f"{suite.database}: repeating {len(first.failed)} failed tests")
    return SuiteResult(suite.database, first, run_pytest(suite, SECOND_PASS))


def compile_tests(suite: Suite) -> None:
    """In a new checkout each process would compile all files, because all begin at once."""
    tests = Path("tests")
    if sys.dont_write_bytecode or not tests.is_dir() or any(tests.rglob("*-pytest-*.pyc")):
        return
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", *suite.arguments]
    # An error is reported when the tests are run.
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run_pytest(suite: Suite, options: Sequence[str]) -> Pass:
    env = os.environ | {"DROVER_TEST_DATABASE": suite.database}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="drover-outcomes-") as directory:
        path = Path(directory) / "outcomes.json"
        plugin = ["-p", "tests.parts.outcomes", "--outcomes", str(path)]
        argv = [sys.executable, "-m", "pytest", *plugin, *suite.arguments, *options]
        status = _wait(subprocess.Popen(argv, env=env))
        written = json.loads(path.read_text()) if path.exists() else {}
    return Pass(status, time.monotonic() - began, **written)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Ctrl-C reaches pytest too, which ends its tests and reports them."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def closing_lines(results: Sequence[SuiteResult]) -> list[str]:
    lines = [result.summary for result in results]
    if failed := _named((result.database, result.failed) for result in results):
        lines += [f"{len(failed)} failed and did not pass when repeated", *failed]
    recovered = _named((result.database, result.recovered) for result in results)
    lines += [f"{len(recovered)} failed first and passed when repeated", *recovered]
    counts = sum((result.counts for result in results), Counter[str]())
    if len(recovered) > MOST_RECOVERED:
        lines.append(f"these count as failed, because they are more than {MOST_RECOVERED}")
        counts["passed"] -= len(recovered)
        counts["failed"] += len(recovered)
    rest = [f", {counts[kind]} {kind}" for kind in ("skipped", "xfailed") if counts[kind]]
    return [*lines, f"{counts['passed']} passed, {counts['failed']} failed{''.join(rest)}"]


def _named(found: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    return [f"  {database}: {test}" for database, tests in found for test in tests]


def exit_status(results: Sequence[SuiteResult]) -> int:
    recovered = sum(len(result.recovered) for result in results)
    wrong = any(result.failed or result.first.broke_off for result in results)
    return int(wrong or recovered > MOST_RECOVERED)


def _say(text: str) -> None:
    print(text, flush=True)


def parse(arguments: Sequence[str]) -> tuple[int | None, list[Suite]]:
    groups: list[list[str]] = [[]]
    for argument in arguments:
        if argument == "--":
            groups.append([])
        else:
            groups[-1].append(argument)
    parser = argparse.ArgumentParser(
        prog="run_suite",
        usage=USAGE,
    )
    parser.add_argument("--processes", type=int)
    processes: int | None = parser.parse_args(groups[0]).processes
    if len(groups) == 1 or not all(groups[1:]):
        parser.error("after each -- a database is expected: sqlite or postgres")
    return processes, [Suite(group[0], group[1:]) for group in groups[1:]]


def may_mount() -> bool:
    """Whether this process can mount a directory for itself alone."""
    if os.geteuid() or not shutil.which("unshare"):
        return False
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run(_with_memory(directory, "true"), capture_output=True).returncode == 0


def run_in_memory(arguments: Sequence[str]) -> int:
    """This program once more, with temporary files in memory."""
    with tempfile.TemporaryDirectory(prefix="d-") as directory:
        Path(directory).chmod(0o755)  # runs of other users pass
        argv = _with_memory(directory, sys.executable, "-m", "tests.parts.run_suite", *arguments)
        return _wait(subprocess.Popen(argv, env=os.environ | {IN_MEMORY: directory}))


def _with_memory(directory: str, *command: str) -> list[str]:
    return ["unshare", "--mount", "sh", "-c", MOUNT, directory, *command]


def main(arguments: Sequence[str]) -> int:
    processes, suites = parse(arguments)
    compile_tests(suites[0])
    results: list[SuiteResult] = []
    for suite in suites:
        results.append(run_suite(suite, processes or PROCESSES[suite.database]))
        if results[-1].first.broke_off:
            break  # a file that cannot be imported, or Ctrl-C, ends the other suites too
    _say("\n".join(["", *closing_lines(results)]))
    return exit_status(results)


if __name__ == "__main__":
    again = IN_MEMORY not in os.environ and may_mount()
    sys.exit((run_in_memory if again else main)(sys.argv[1:]))
