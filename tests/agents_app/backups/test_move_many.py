"""A database with 100,000 runs is moved to PostgreSQL with bounded memory."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agents_app.conf import ROOT
from tests.parts.postgres_part import PostgresServer
from tests.parts.stack_part import PrivateStack

RUNS = 100_000
# Of the process that moves; an idle command has about 100 MB.
MOST_MEMORY_BYTES = 250_000_000
# Prints what a program has used at most. A process of its own, because until it executes another
# program a child counts the memory of its parent, which is that of all tests before.
MEASURE = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
sys.exit(status)
"""


def insert_many(stack: PrivateStack, table: str, **values: str) -> None:
    """Rows 1 to RUNS; columns that are not given and need a value are empty, zero or a date."""
    columns = stack.rows(f"SELECT * FROM pragma_table_info('{table}')")
    given = {"id": "i", "agent_id": "1", "tenant_id": "1", **values}
    for column in columns:
        if column["notnull"] and column["dflt_value"] is None and column["name"] not in given:
            kind = column["type"].partition("(")[0]
            empty = {"datetime": "'2026-01-01 00:00:00.25'", "varchar": "''", "text": "''"}
            given[column["name"]] = empty.get(kind, "0")
    names = ", ".join(f'"{name}"' for name in given)
    stack.rows(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        f"INSERT INTO {table} ({names}) SELECT {', '.join(given.values())} FROM n",
        RUNS,
    )


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[PrivateStack]:
    """100,000 ended runs with work and events; row 100,001 existed and was deleted."""
    stack = PrivateStack(tmp_path / "filled")
    stack.migrate()
    stack.write_agent("many", "---\ndescription: x\ncommand: [echo]\n---\n")
    stack.manage("discover", "--sync")
    assert stack.rows("SELECT id FROM drover_agent") == [{"id": 1}]
    ended = {"finished_at": "'2026-01-01 00:00:02'"}
    insert_many(
        stack, "drover_work_item", **ended, state="'done'", trigger="'manual'", prompt="'Do ' || i"
    )
    ended["started_at"] = "'2026-01-01 00:00:01'"
    insert_many(
        stack, "drover_run", **ended, state="'succeeded'", trigger="'manual'", work_item_id="i"
    )
    insert_many(stack, "drover_run_event", name="'run.succeeded'", run_id="i")
    stack.rows("UPDATE sqlite_sequence SET seq = ? WHERE name = 'drover_run'", RUNS + 1)
    yield stack
    stack.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_runs_are_moved_with_bounded_memory(
    filled: PrivateStack, postgres: PostgresServer
):
    url = postgres.new_database()
    argv = [sys.executable, "-c", MEASURE, sys.executable, "manage.py", "move_to_postgres", url]
    moved = subprocess.run(argv, cwd=ROOT, env=filled.env, capture_output=True, text=True)
    assert moved.returncode == 0 and "all counts are equal" in moved.stdout, moved.stderr
    seconds, most_bytes = moved.stdout.splitlines()[-1].split()
    print(f"{float(seconds):.1f} s of CPU, {int(most_bytes) / 1e6:.0f} MB")
    assert int(most_bytes) < MOST_MEMORY_BYTES
    tables = ("drover_run", "drover_work_item", "drover_run_event")
    sums = [
        f"SELECT '{table}' AS name, count(*) AS n, sum(id) AS s FROM {table}" for table in tables
    ]
    before = [tuple(row.values()) for row in filled.rows(" UNION ALL ".join(sums))]
    assert {n for _, n, _ in before} == {RUNS}
    with psycopg.connect(url) as target:
        assert sorted(target.execute(" UNION ALL ".join(sums)).fetchall()) == sorted(before)
        next_id = "SELECT nextval(pg_get_serial_sequence('drover_run', 'id'))"
        assert target.execute(next_id).fetchone() == (RUNS + 2,)
    filled.env["DATABASE_URL"] = url
    added = filled.manage("run", "many")
    assert added.returncode == 0, added.stderr
    checked = filled.manage("doctor", "--invariants", "--json", seconds=120)
    findings = json.loads(checked.stdout)["findings"]
    assert [one["verdict"] for one in findings if one["check"] == "invariants"] == ["ok"]
