"""The complete example of rules in the documentation, in a running project."""

import pytest

from tests.agents_app.management.test_rules import COMPLETE
from tests.end_to_end.conftest import NewFleet
from tests.end_to_end.test_examples import RUNS, printed
from tests.faults.real_fleet import seconds_ago
from tests.parts.stack_part import PrivateStack, Row
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

WATCHER = """---
description: Goes on until it is released, and says what it hears
command: [sh, -c, 'cat; while :; do drover inbox --timeout 1 || true; done']
---
Watch.
"""
# Looks come every ten seconds.
SECONDS = 30


def status(stack: PrivateStack, rule: str) -> str:
    (row,) = stack.rows("SELECT status, reason FROM drover_rule WHERE name = ?", rule) or [{}]
    return f"{row.get('status')}: {row.get('reason')}"


def make_due(stack: PrivateStack, rule: str) -> None:
    """As if its minute had come."""
    stack.rows("UPDATE drover_rule SET next_due_at = ? WHERE name = ?", seconds_ago(1), rule)


def fires(stack: PrivateStack, rule: str) -> None:
    make_due(stack, rule)
    wait_for(lambda: status(stack, rule).startswith("ok: "), SECONDS, lambda: status(stack, rule))


def running(stack: PrivateStack, agent: str) -> Row:
    def going_on() -> Row | None:
        runs = stack.rows(RUNS, agent)
        return runs[-1] if runs and runs[-1]["state"] == "running" else None

    found = wait_for(going_on, SECONDS, lambda: stack.log("up"))
    assert found is not None
    return found


def hears(stack: PrivateStack, run: Row, text: str) -> None:
    wait_for(lambda: text in printed(stack, run), SECONDS, lambda: printed(stack, run))


def test_a_project_follows_the_complete_example_of_rules_and_every_edit(
    new_fleet: NewFleet,
) -> None:
    """Guard: beat looks, its threads do. Without either nobody is summoned, told or released."""
    stack = new_fleet().stack
    for name in ("forge", "beacon", "drift"):
        stack.write_agent(name, WATCHER)
    stack.up()
    file = stack.project / "scheduler.rules"
    file.write_text(COMPLETE)
    stack.wait_for_rows("SELECT count(*) FROM drover_rule HAVING count(*) = 6", seconds=SECONDS)
    fires(stack, "keep-forge")
    forge = running(stack, "forge")
    assert forge["trigger"] == "rule"
    fires(stack, "weekly-summary")
    beacon = running(stack, "beacon")
    hears(stack, beacon, "Build weekly narrative")
    fires(stack, "daily-narrative")
    hears(stack, beacon, "Write daily narrative for today")
    # An edit: one rule more, and a line that is none.
    file.write_text(f"{COMPLETE}[enough] every 1m => release forge\nevery 5 minutes do nothing\n")
    stack.wait_for_rows("SELECT id FROM drover_rule WHERE name = 'enough'", seconds=SECONDS)
    assert status(stack, "keep-forge").startswith("ok: ")
    found = stack.manage("doctor")
    assert f"line {len(COMPLETE.splitlines()) + 2}" in found.stdout
    fires(stack, "enough")
    wait_for(lambda: stack.rows(RUNS, "forge")[0]["state"] == "stopped", SECONDS)
