"""Removes guards in a racer and its database, so that a test can show that its checks fail.

Each function removes a guard and all other guards that would have the same effect."""

import os
import signal
import time
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models import QuerySet

from agents_app.database import sql as rows
from agents_app.database import transactions
from agents_app.runs import dispatch, lifecycle, slots
from agents_app.schedules import due
from agents_app.worker import execute


def drop_index(model: str, name: str) -> None:
    """Remove the unique constraint of that name and nothing else."""
    table = apps.get_model("agents_app", model)
    (constraint,) = [each for each in table._meta.constraints if each.name == name]
    # SQLite creates the table again from the model.
    table._meta.constraints = [each for each in table._meta.constraints if each.name != name]
    with connection.schema_editor() as editor:
        editor.remove_constraint(table, constraint)


def _replace(module: Any, name: str, value: Any) -> None:
    assert hasattr(module, name), f"{module.__name__} has no {name}: adapt this function"
    setattr(module, name, value)


def _without_transaction(change: Any) -> Any:
    """No transaction: rows may change between reading and writing, and no lock is held."""
    return change()


def claims_without_guards() -> None:
    """No transaction, no row lock, and no comparison with the old next fire time."""
    _replace(due, "in_transaction", _without_transaction)
    original = due._lock_due_schedules

    def delayed(now: Any) -> Any:
        schedules = original(now)
        time.sleep(0.02)  # between reading due schedules and writing firings
        return schedules

    _replace(due, "_lock_due_schedules", delayed)
    QuerySet.select_for_update = lambda self, *_, **__: self  # type: ignore[method-assign]
    assert " AND s.next_fire_at = v.was" in due._SET_NEXT_FIRES
    due._SET_NEXT_FIRES = due._SET_NEXT_FIRES.replace(" AND s.next_fire_at = v.was", "")


def admissions_without_guards() -> None:
    """No transaction, so the lock on the agent is released immediately."""
    _replace(dispatch, "in_transaction", _without_transaction)
    original = slots.find_free_slots

    def delayed(*arguments: Any) -> Any:
        found = original(*arguments)
        time.sleep(0.01)  # between finding a free slot and using it
        return found

    _replace(dispatch, "find_free_slots", delayed)


def moves_without_a_condition() -> None:
    """A move does not require the old state."""
    _replace(execute, "in_transaction", _without_transaction)
    _replace(lifecycle, "move_state", _move_unconditionally)


def _move_unconditionally(
    table: str, key: int, old: str, new: str, columns: dict[str, Any], *_: Any
) -> bool:
    assignments = "".join(f", {name} = %s" for name in columns)
    sql = f"UPDATE {table} SET state = %s{assignments} WHERE id = %s"
    time.sleep(0.02)  # between reading the old state and writing the new one
    rows.execute(sql, [str(new), *columns.values(), key])
    return True


def _without_into(insert: Any) -> Any:
    return lambda into, *rest: insert(into.removeprefix("INTO "), *rest)


def die_at(at_sql: str, *, after: bool) -> None:
    """Send SIGKILL to this process at the first statement that contains `at_sql`."""

    def watch(execute_sql: Any, sql: str, *rest: Any) -> Any:
        hit = at_sql in sql
        if hit and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = execute_sql(sql, *rest)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def install(connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(watch)

    connection_created.connect(install, weak=False)
    connection.close()
    plain = rows.execute
    _replace(rows, "execute", lambda sql, values: watch(plain, sql, values))
    fetch_each = due.fetch_each

    def fetch_watched(queries: Any) -> Any:
        queries = list(queries)
        return watch(lambda _: fetch_each(queries), "; ".join(sql for sql, _ in queries))

    _replace(due, "fetch_each", fetch_watched)
    insert = due.insert_many
    _replace(
        due,
        "insert_many",
        lambda table, *rest: watch(_without_into(insert), f"INTO {table}", *rest),
    )
    assert transactions._writer._thread is None, "its connection would not be watched"
