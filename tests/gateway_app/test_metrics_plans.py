"""The cost of a scrape with a long history, by the query plans of SQLite.

The tables of a test are too small to measure the time, and PostgreSQL plans by the size of a table.
"""

import re

from django.db import connection

from agents_app.maintenance import metrics
from tests.agents_app.fleet import NOON, Fleet

GROWS = r"SCAN (drover_(run|run_event|work_item|firing|delivery))\b(?! USING (COVERING )?INDEX)"


def test_no_query_of_the_metrics_scans_a_history_table(fleet: Fleet):
    statements: list[str] = []
    connection.ensure_connection()
    connection.connection.set_trace_callback(statements.append)
    try:
        metrics.read_metrics(NOON)
    finally:
        connection.connection.set_trace_callback(None)
    queries = [sql for sql in statements if sql.lstrip().startswith("SELECT")]
    assert len(queries) > 8
    plans = [(sql, _plan(sql)) for sql in queries]
    assert [(sql, plan) for sql, plan in plans if re.search(GROWS, plan)] == []


def _plan(sql: str) -> str:
    rows = connection.connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()
    return "\n".join(row[-1] for row in rows)
