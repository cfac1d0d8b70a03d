"""A database with 100,000 runs is moved to PostgreSQL with bounded memory."""

import json
import os
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
    filled: PrivateStack, postgres: PostgresServer, tmp_path: Path
):
    url = postgres.new_database()
    with (tmp_path / "output").open("w") as output:
        moving = subprocess.Popen(
            [sys.executable, "manage.py", "move_to_postgres", url],
            cwd=ROOT,
            env=filled.env,
            stdout=output,
            stderr=output,
        )
        _, status, used = os.wait4(moving.pid, 0)
    print(f"{used.ru_utime + used.ru_stime:.1f} s of CPU, {used.ru_maxrss / 1024:.0f} MB")
    said = (tmp_path / "output").read_text()
    assert status == 0 and "all counts are equal" in said, said
    assert used.ru_maxrss * 1024 < MOST_MEMORY_BYTES
    tables = ("drover_run", "drover_work_item", "drover_run_event")
    sums = [
        f"SELECT '{table}' AS name, count(*) AS n, sum(id) AS s FROM {table}" for table in tables
    ]
    before = [tuple(row.values()) for row in filled.rows(" UNION ALL ".join(sums))]
    assert {n for _, n, _ in before} == {RUNS}
    with psycopg.connect(url) as moved:
        assert sorted(moved.execute(" UNION ALL ".join(sums)).fetchall()) == sorted(before)
        next_id = "SELECT nextval(pg_get_serial_sequence('drover_run', 'id'))"
        assert moved.execute(next_id).fetchone() == (RUNS + 2,)
    filled.env["DATABASE_URL"] = url
    added = filled.manage("run", "many")
    assert added.returncode == 0, added.stderr
    checked = filled.manage("doctor", "--invariants", "--json", seconds=120)
    findings = json.loads(checked.stdout)["findings"]
    assert [one["verdict"] for one in findings if one["check"] == "invariants"] == ["ok"]
