"""What the tables of version 0.1.0 hold and must hold after an upgrade, as plain values.

The SQL is that of version 0.1.0 and is not changed with later versions: what it found is kept in
data/expected.json.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
Rows = Callable[..., list[Row]]

TABLES = (
    *("agent", "agent_call", "api_token", "credential", "delivery", "firing", "heartbeat"),
    *("lock_wait", "login_failure", "machine_snapshot", "message", "metric_cursor"),
    *("metric_total", "notify_target", "resource_lock", "rule", "rule_book", "run", "run_event"),
    *("run_output", "schedule", "scheduler", "tenant", "usage", "webhook_secret"),
    *("webhook_source", "work_item", "worker"),
)
# By which columns the rows of a table are counted.
STATES = {
    "run": ("state",),
    "work_item": ("state", "trigger"),
    "schedule": ("state", "source"),
    "firing": ("outcome", "reason"),
    "delivery": ("outcome", "provider"),
    "rule": ("name", "status"),
    "run_event": ("name",),
}
WORK = """
SELECT w.id, a.name AS agent, w.state, w.trigger, w.requested_by, w.schedule_id, w.firing_id,
  w.idempotency_key, w.parent_run_id, w.context, w.created_at, w.finished_at,
  m.id AS message_id, u.id AS rule_id
FROM drover_work_item w JOIN drover_agent a ON a.id = w.agent_id
LEFT JOIN drover_message m ON m.work_item_id = w.id
LEFT JOIN drover_rule u ON u.tenant_id = w.tenant_id AND w.trigger = 'rule'
  AND w.requested_by = 'rule ' || u.name
ORDER BY w.id"""
# The rows that no answer of the API shows. The tests execute the same statements again.
ROWS = {
    "firings": "SELECT id, schedule_id, due_at, outcome, reason FROM drover_firing ORDER BY id",
    "messages": "SELECT id, text, sender, run_id, work_item_id FROM drover_message ORDER BY id",
    "usage": "SELECT agent_id, tokens, cost_usd FROM drover_usage ORDER BY agent_id",
    "locks": "SELECT id, uri, holder, expires_at FROM drover_resource_lock ORDER BY id",
    "totals": "SELECT name, labels, value FROM drover_metric_total ORDER BY name, labels",
    "rules": "SELECT name, text, status, reason, fired_at, tail FROM drover_rule ORDER BY name",
    "contexts": "SELECT id, context FROM drover_work_item WHERE context <> '' ORDER BY id",
}
OUTPUT = "SELECT run_id, data FROM drover_run_output ORDER BY run_id, seq"
# Of a longer one the sum is kept.
LONGEST_TEXT = 4000


def read_facts(rows: Rows) -> dict[str, Any]:
    return {
        "counts": count_rows(rows),
        "states": {table: count_states(rows, table) for table in STATES},
        "rows": read_rows(rows),
        "output": read_output(rows),
        "causes": {str(item["id"]): cause_of(item, rows) for item in rows(WORK)},
        "runs_of_work": runs_of_work(rows),
    }


def count_rows(rows: Rows) -> dict[str, int]:
    return {name: rows(f"SELECT count(*) AS n FROM drover_{name}")[0]["n"] for name in TABLES}


def count_states(rows: Rows, table: str) -> dict[str, int]:
    columns = ", ".join(STATES[table])
    sql = f"SELECT {columns}, count(*) AS n FROM drover_{table} GROUP BY {columns}"
    return {" ".join(str(row[name]) for name in STATES[table]): row["n"] for row in rows(sql)}


def read_rows(rows: Rows) -> dict[str, list[Row]]:
    return {name: plain(rows(sql)) for name, sql in ROWS.items()}


def runs_of_work(rows: Rows) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows("SELECT id, work_item_id FROM drover_run ORDER BY id"):
        found.setdefault(str(row["work_item_id"]), []).append(row["id"])
    return found


def read_output(rows: Rows) -> dict[str, Row]:
    """What each run printed, byte for byte."""
    printed: dict[str, bytes] = {}
    for row in rows(OUTPUT):
        printed[str(row["run_id"])] = printed.get(str(row["run_id"]), b"") + bytes(row["data"])
    return {run: summed(data) for run, data in printed.items()}


def summed(data: bytes) -> Row:
    """The sum and the length of the bytes, and the bytes themselves unless there are many."""
    facts: Row = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return facts | ({"text": data.decode("latin-1")} if len(data) <= LONGEST_TEXT else {})


# --- causes ---------------------------------------------------------------------------------

DELIVERY = re.compile(r"delivery:(\d+):")
RERUN = re.compile(r", rerun of run (\d+)$")


def cause_of(item: Row, rows: Rows) -> Row:
    """The row that a work item was created for, by what version 0.1.0 writes into its columns.

    `missing`: the column names a row that was removed since.
    """
    key, said = item["idempotency_key"] or "", item["requested_by"]
    if item["trigger"] == "webhook" and (found := DELIVERY.match(key)):
        return existing("delivery", int(found[1]), rows)
    if item["parent_run_id"]:
        return existing("run", item["parent_run_id"], rows, kind="call")
    if found := RERUN.search(said):
        return existing("run", int(found[1]), rows, kind="rerun")
    if item["message_id"]:
        return {"kind": "message", "id": item["message_id"]}
    if item["trigger"] == "rule":
        return {"kind": "rule", "id": item["rule_id"], "missing": item["rule_id"] is None}
    if item["firing_id"]:
        return {"kind": "firing", "id": item["firing_id"], "schedule": item["schedule_id"]}
    if item["schedule_id"]:
        return {"kind": "schedule", "id": item["schedule_id"]}
    return {"kind": "person", "name": said}


def existing(table: str, key: int, rows: Rows, kind: str = "") -> Row:
    found = rows(f"SELECT id FROM drover_{table} WHERE id = ?", key)
    return {"kind": kind or table, "id": key, "missing": not found}


# --- values ---------------------------------------------------------------------------------


def plain(rows: list[Row]) -> list[Row]:
    return [{name: value(name, of) for name, of in row.items()} for row in rows]


def value(name: str, of: Any) -> Any:
    """As both databases and JSON can say it: moments in UTC, costs as text."""
    if name.endswith("_at") or name.endswith("_until"):
        return None if of is None else moment(of)
    return f"{of:.6f}" if name == "cost_usd" else of


def moment(of: Any) -> str:
    """PostgreSQL gives a datetime with a zone, SQLite a text without one."""
    parsed = of if isinstance(of, datetime) else datetime.fromisoformat(of).replace(tzinfo=UTC)
    return parsed.astimezone(UTC).isoformat()
