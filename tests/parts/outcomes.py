"""A pytest plugin that writes what became of each test to a file: `-p tests.parts.outcomes`."""

import json
from pathlib import Path

import pytest

# A test has several reports: it failed if one of them did, for example that of its fixtures.
WORST_FIRST = ("failed", "xfailed", "skipped", "passed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", metavar="FILE", help="write the outcome of each test as JSON")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--outcomes")
    # The processes of pytest-xdist report to the one that started them.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(OutcomeRecorder(Path(path)))


class OutcomeRecorder:
    """Collects reports of one session and writes them at its end, also if it is interrupted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tests: dict[str, str] = {}
        self.collection_errors: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self.collection_errors:
            self.collection_errors.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when != "call":
            return
        expected = report.skipped and hasattr(report, "wasxfail")
        outcome = "xfailed" if expected else str(report.outcome)
        before = self.tests.get(report.nodeid, outcome)
        self.tests[report.nodeid] = min(outcome, before, key=WORST_FIRST.index)

    def pytest_sessionfinish(self) -> None:
        written = {"tests": self.tests, "collection_errors": self.collection_errors}
        self.path.write_text(json.dumps(written))
