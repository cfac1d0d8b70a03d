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
description: Runs until it is released, and prints its messages
command: [sh, -c, 'cat; while :; do drover inbox --timeout 1 || true; done']
---
Watch.
"""
# Rules are evaluated every ten seconds.
SECONDS = 30


def status(stack: PrivateStack, rule: str) -> str:
    (row,) = stack.rows("SELECT status, reason FROM drover_rule WHERE name = ?", rule) or [{}]
    return f"{row.get('status')}: {row.get('reason')}"


def make_due(stack: PrivateStack, rule: str) -> None:
    """Make the rule due now."""
    stack.rows("UPDATE drover_rule SET next_due_at = ? WHERE name = ?", seconds_ago(1), rule)


def fires(stack: PrivateStack, rule: str) -> None:
    make_due(stack, rule)
    wait_for(lambda: status(stack, rule).startswith("ok: "), SECONDS, lambda: status(stack, rule))


def running(stack: PrivateStack, agent: str) -> Row:
    def find_running_run() -> Row | None:
        runs = stack.rows(RUNS, agent)
        return runs[-1] if runs and runs[-1]["state"] == "running" else None

    found = wait_for(find_running_run, SECONDS, lambda: stack.log("up"))
    assert found is not None
    return found


def wait_for_message(stack: PrivateStack, run: Row, text: str) -> None:
    wait_for(lambda: text in printed(stack, run), SECONDS, lambda: printed(stack, run))


def test_the_complete_example_of_rules_and_its_edits_take_effect(
    new_fleet: NewFleet,
) -> None:
    """Guard: beat evaluates rules and its threads perform actions. Without either no agent is
    summoned, messaged or released."""
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
    wait_for_message(stack, beacon, "Build weekly narrative")
    fires(stack, "daily-narrative")
    wait_for_message(stack, beacon, "Write daily narrative for today")
    # An edit: one more rule, and an invalid line.
    file.write_text(f"{COMPLETE}[enough] every 1m => release forge\nevery 5 minutes do nothing\n")
    stack.wait_for_rows("SELECT id FROM drover_rule WHERE name = 'enough'", seconds=SECONDS)
    assert status(stack, "keep-forge").startswith("ok: ")
    found = stack.manage("doctor")
    assert f"line {len(COMPLETE.splitlines()) + 2}" in found.stdout
    fires(stack, "enough")
    wait_for(lambda: stack.rows(RUNS, "forge")[0]["state"] == "stopped", SECONDS)
