"""Locks of a database engine, proven on a real SQLite file and a real PostgreSQL server."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from agents_app.database.engine import Engine
from tests.agents_app.database.item_table import (
    Elsewhere,
    blocked,
    give_up_at_once,
    insert,
)

# Texts that array literals, JSON or SQL could take for something else.
AWKWARD = 'a "quoted", {braced} \\ NULL \n %s ? ünïcode'

# --- locks ----------------------------------------------------------------------------------


def locks(engine: Engine, key: int) -> dict[str, Callable[[], Any]]:
    select = f"SELECT t.id FROM item t WHERE t.id = {key}"
    return {
        "row_lock": lambda: engine.execute(select + engine.row_lock(), []),
        "row_lock of a table": lambda: engine.execute(select + engine.row_lock("t"), []),
        "lock_row": lambda: engine.lock_row("item", key),
        "lock_number": lambda: engine.lock_number(7, 2**31 - 1),
        "row_lock_skipping_locked": lambda: engine.execute(
            select + engine.row_lock_skipping_locked("t"), []
        ),
    }


LOCKS = ["row_lock", "row_lock of a table", "lock_row", "lock_number", "row_lock_skipping_locked"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_second_transaction_waits_for_a_lock_until_the_first_one_ends(
    engine: Engine, elsewhere: Elsewhere, name: str
):
    key = insert(engine, "a")
    lock = locks(engine, key)[name]
    waiting = locks(engine, key)["row_lock" if "skipping" in name else name]
    try:
        give_up_at_once(engine)
        elsewhere.begin(lock)
        assert blocked(engine, waiting)
        elsewhere.end()
        assert not blocked(engine, waiting)
    finally:
        connections[engine.alias].close()


def test_rows_that_are_locked_elsewhere_are_left_out_where_others_can_write(
    engine: Engine, elsewhere: Elsewhere
):
    first, second = insert(engine, "a"), insert(engine, "b")
    sql = "SELECT t.id FROM item t ORDER BY t.id" + engine.row_lock_skipping_locked("t")
    assert engine.fetch_all(sql, []) == [(first,), (second,)]
    elsewhere.begin(lambda: engine.lock_row("item", first))
    # SQLite has one writing transaction at a time, which another one can only wait for.
    expected = [(first,), (second,)] if engine.ids_appear_in_order else [(second,)]
    assert engine.fetch_all(sql, []) == expected
    elsewhere.end()


def test_locks_on_different_numbers_are_different_locks(engine: Engine, elsewhere: Elsewhere):
    elsewhere.begin(lambda: engine.lock_number(7, 1))
    try:
        give_up_at_once(engine)
        for kind, number in ((7, 2), (8, 1)):
            wait = blocked(engine, lambda k=kind, n=number: engine.lock_number(k, n))
            # SQLite locks the whole file instead.
            assert wait == engine.ids_appear_in_order
    finally:
        elsewhere.end()
        connections[engine.alias].close()
