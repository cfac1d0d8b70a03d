"""What a scrape costs with a long history, by SQLite's plans; a test's tables are too small for the
time it takes, and PostgreSQL plans by the size of a table."""

import re

from django.db import connection

from agents_app.maintenance import metrics
from tests.agents_app.fleet import NOON, Fleet

GROWS = r"SCAN (drover_(run|run_event|work_item|firing|delivery))\b(?! USING (COVERING )?INDEX)"


def test_no_table_that_grows_with_history_is_read_to_its_end(fleet: Fleet):
    statements: list[str] = []
    connection.ensure_connection()
    connection.connection.set_trace_callback(statements.append)
    try:
        metrics.read_metrics(NOON)
    finally:
        connection.connection.set_trace_callback(None)
    looked = [sql for sql in statements if sql.lstrip().startswith("SELECT")]
    assert len(looked) > 8
    plans = [(sql, _plan(sql)) for sql in looked]
    assert [(sql, plan) for sql, plan in plans if re.search(GROWS, plan)] == []


def _plan(sql: str) -> str:
    rows = connection.connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    return "\n".join(row[-1] for row in rows)
