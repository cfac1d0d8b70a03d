"""Takes guards away on purpose, in a racer and its database: then the checks must find something.

Each function breaks what keeps a promise, and all that would keep it in its place."""

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
    """The unique constraint of that name is gone; the rest of the table stays."""
    table = apps.get_model("agents_app", model)
    (constraint,) = [one for one in table._meta.constraints if one.name == name]
    # SQLite makes the table anew, as the model says.
    table._meta.constraints = [one for one in table._meta.constraints if one.name != name]
    with connection.schema_editor() as editor:
        editor.remove_constraint(table, constraint)


def _replace(module: Any, name: str, value: Any) -> None:
    assert hasattr(module, name), f"{module.__name__} has no {name} any more: break it otherwise"
    setattr(module, name, value)


def _straight_on(change: Any) -> Any:
    """No transaction: what was read may be old when it is written, and no lock is held."""
    return change()


def claims_without_guards() -> None:
    """No transaction, no row lock, and whoever comes second arms the schedule again."""
    _replace(due, "in_transaction", _straight_on)
    careful = due._due

    def a_little_later(now: Any) -> Any:
        schedules = careful(now)
        time.sleep(0.02)  # between having read what is due and writing it down
        return schedules

    _replace(due, "_due", a_little_later)
    QuerySet.select_for_update = lambda self, *_, **__: self  # type: ignore[method-assign]
    assert " AND s.next_fire_at = v.was" in due._ARM
    due._ARM = due._ARM.replace(" AND s.next_fire_at = v.was", "")


def admissions_without_guards() -> None:
    """No transaction, so the lock on the agent is gone as soon as it is taken."""
    _replace(dispatch, "in_transaction", _straight_on)
    careful = slots.find_free_slots

    def a_little_later(*arguments: Any) -> Any:
        place = careful(*arguments)
        time.sleep(0.01)  # between having seen a free slot and taking it
        return place

    _replace(dispatch, "find_free_slots", a_little_later)


def moves_without_a_condition() -> None:
    """A move no longer asks for the state it starts from."""
    _replace(execute, "in_transaction", _straight_on)
    _replace(lifecycle, "move_state", _move_anyway)


def _move_anyway(
    table: str, key: int, old: str, new: str, columns: dict[str, Any], *_: Any
) -> bool:
    assignments = "".join(f", {name} = %s" for name in columns)
    sql = f"UPDATE {table} SET state = %s{assignments} WHERE id = %s"
    time.sleep(0.02)  # between having read the old state and writing the new one
    rows.execute(sql, [str(new), *columns.values(), key])
    return True


def _inserting(insert: Any) -> Any:
    return lambda into, *rest: insert(into.removeprefix("INTO "), *rest)


def die_at(at_sql: str, *, after: bool) -> None:
    """SIGKILL to this process at the first statement with this in it, on whatever connection."""

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
        due, "insert_many", lambda table, *rest: watch(_inserting(insert), f"INTO {table}", *rest)
    )
    assert transactions._writer._thread is None, "its connection would not be watched"
