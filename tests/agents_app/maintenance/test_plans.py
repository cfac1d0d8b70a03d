"""What beat does by itself never reads a whole table of the history, on either database."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from agents_app.database import ENGINE
from agents_app.maintenance.duties import DUTIES
from agents_app.maintenance.retention import remove_old_rows
from agents_app.models import Run, Scheduler
from agents_app.schedules import due, firings
from tests.agents_app.fleet import NOON, Fleet, at, running

HISTORY = {
    *("drover_run", "drover_run_event", "drover_run_output", "drover_work_item", "drover_firing"),
    "drover_delivery",
}
# Indexes of rows that are not finished, however long the history is.
SMALL = {
    *("run_slot_once", "run_project_slot_once", "run_live_once_per_work_item", "run_unfinished"),
    *("work_item_next", "work_item_live_of_schedule", "firing_undecided", "firing_polling"),
}
Plans = list[tuple[str, str]]


@contextmanager
def plans_of_sqlite() -> Iterator[Plans]:
    """Statements whose plan reads all rows of a table, with that line of the plan."""
    driver: Any = ENGINE.connection().connection
    statements: list[str] = []
    found: Plans = []
    driver.set_trace_callback(statements.append)
    try:
        yield found
    finally:
        driver.set_trace_callback(None)
    for statement in dict.fromkeys(statements):
        if statement.split()[0].upper() not in {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"}:
            continue
        for *_, line in driver.execute(f"EXPLAIN QUERY PLAN {statement}"):
            scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
            if scan and _table(scan[1], statement) in HISTORY and scan[2] not in SMALL:
                found.append((line, statement))


def _table(name: str, statement: str) -> str:
    """The table of an alias."""
    alias = re.search(rf'"?(\w+)"?\s+(?:AS\s+)?"?{name}"?[\s,)]', statement)
    known = alias and alias[1].lower() not in {"from", "join", "update", "into"}
    return alias[1] if alias and known else name


@contextmanager
def plans_of_postgres() -> Iterator[Plans]:
    """With sequential scans forbidden: a small table would be read without its index."""
    driver: Any = ENGINE.connection().connection
    found: Plans = []

    def receive(notice: Any) -> None:
        text = notice.message_primary
        if "plan:" in text:
            logged = json.loads(text[text.index("{") :])
            found.extend((line, logged["Query Text"]) for line in _full_scans(logged["Plan"]))

    settings = ("LOAD 'auto_explain'", "SET auto_explain.log_min_duration = 0")
    settings += ("SET auto_explain.log_format = json", "SET auto_explain.log_level = notice")
    for setting in (*settings, "SET enable_seqscan = off"):
        driver.execute(setting)
    driver.add_notice_handler(receive)
    try:
        yield found
    finally:
        driver.remove_notice_handler(receive)
        for setting in ("SET auto_explain.log_min_duration = -1", "SET enable_seqscan = on"):
            driver.execute(setting)


def _full_scans(node: dict[str, Any]) -> Iterator[str]:
    if node.get("Relation Name") in HISTORY and "Scan" in node["Node Type"]:
        bounded = "Index Cond" in node or "Recheck Cond" in node or "TID Cond" in node
        if not bounded and node.get("Index Name") not in SMALL:
            yield f"{node['Node Type']} {node['Relation Name']} {node.get('Index Name', '')}"
    for below in node.get("Plans", ()):
        yield from _full_scans(below)


@pytest.fixture
def plans() -> Callable[[], Any]:
    return plans_of_sqlite if ENGINE.name == "sqlite" else plans_of_postgres


@pytest.fixture
def busy(fleet: Fleet) -> Fleet:
    """Rows in each state, so that no duty stops early."""
    agent = fleet.agent(scale=2)
    fleet.schedule(agent)
    running(fleet, agent)
    fleet.enqueue(agent)
    fleet.enqueue(agent)
    Run.objects.update(hinted_at=at(-100))
    Scheduler.objects.update_or_create(pk=1, defaults={"last_reconcile_at": NOON})
    return fleet


# Retention without its last step, which ends the transaction of the test.
REPLACED = {"agents_app.tasks.retention": remove_old_rows}


@pytest.mark.parametrize("duty", DUTIES)
def test_no_duty_reads_a_whole_table_of_the_history(busy: Fleet, plans, duty: str):
    with plans() as found:
        REPLACED.get(duty, DUTIES[duty])(NOON + timedelta(seconds=10))
    assert found == [], "\n".join(f"{line}: {sql}" for line, sql in found)


def test_no_tick_reads_a_whole_table_of_the_history(busy: Fleet, plans):
    with plans() as found:
        due.claim_due_schedules(at(1))
        firings.decide_firings(at(1))
    assert found == [], "\n".join(f"{line}: {sql}" for line, sql in found)
