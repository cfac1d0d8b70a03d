"""Two Drovers on one repository: no issue is worked on twice, none is lost, whatever dies when."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agents_app.work_sources.github_server import (
    Fault,
    GitHubServer,
    Request,
    serving_github,
)
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

ISSUES = range(1, 7)
SKILL = """---
command: [sh, -c, "grep -o 'issue [0-9]*' | head -1 >> {notes}"]
schedule: 1s
scale: 1
sandbox: 'off'
work_source:
  type: github
  repo: o/r
  url: {url}
  auth: file:token
---
Note the title of the issue.
"""


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with serving_github() as server:
        yield server


@pytest.fixture
def drovers(
    tmp_path: Path, github: GitHubServer, migrated_database: Callable[[Path], str]
) -> Iterator[dict[str, PrivateStack]]:
    """By the tokens that they use."""
    with ExitStack() as stacks:
        found = {}
        for name in ("token-a", "token-b"):
            url = migrated_database(tmp_path / name / "data")
            stack = PrivateStack(tmp_path / name, url, DROVER_OUTGOING_HOSTS="127.0.0.1")
            stacks.callback(stack.close)
            (stack.project / "token").write_text(name)
            notes = tmp_path / f"{name}.notes"
            stack.write_agent("fixer", SKILL.format(notes=notes, url=github.url))
            found[name] = stack
        github.tokens |= found.keys()
        yield found


def notes(tmp_path: Path) -> list[str]:
    files = [path for path in tmp_path.glob("*.notes") if path.exists()]
    return [line for path in files for line in path.read_text().splitlines()]


class BeatKiller:
    """Kills the beat that has sent a request, after it took effect: between claim and start."""

    def __init__(self, drovers: dict[str, PrivateStack]) -> None:
        self.drovers = drovers
        self.left = {"POST comments": 2, "DELETE ready": 1, "POST labels": 1}
        self.killed: list[PrivateStack] = []

    def after(self, request: Request) -> None:
        step = f"{request.method} {request.path.rpartition('/')[2]}"
        beat = self.drovers[request.token].processes.get("beat")
        if self.left.get(step) and beat is not None and beat.poll() is None:
            self.left[step] -= 1
            beat.kill()
            self.killed.append(self.drovers[request.token])


@pytest.mark.fault("F80")
def test_no_issue_is_worked_on_twice_and_none_is_lost(tmp_path, github, drovers):
    for number in ISSUES:
        github.add(number)
    github.latency_seconds = 0.05
    github.faults += [
        Fault("POST .*/labels", 409, count=2),
        Fault("GET .*/issues$", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
        Fault("GET .*/comments", 502, count=2),
    ]
    killer = BeatKiller(drovers)
    github.after = killer.after
    for drover in drovers.values():
        drover.start("redis")
        drover.start("worker-1")
        drover.start("beat")

    def finished() -> bool:
        while killer.killed:
            drover = killer.killed.pop()
            drover.processes.pop("beat").wait()
            drover.start("beat")
        return all(issue.state == "closed" for issue in github.issues.values())

    wait_for(finished, 90, lambda: "\n".join(d.log("beat")[-3000:] for d in drovers.values()))
    assert sorted(notes(tmp_path)) == [f"issue {number}" for number in ISSUES]
    assert not any(killer.left.values()), "a step was not met"
    assert [issue.labels for issue in github.issues.values()] == [[]] * len(ISSUES)
    for number in ISSUES:
        assert sum("Done by" in text for text in github.said(number)) == 1
