"""The contract of a database engine, proven on a real SQLite file and a real PostgreSQL server.

Both engines run in the same session, whatever DROVER_TEST_DATABASE says.
"""

import ast
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connections, transaction

from agents_app.conf import database_settings
from agents_app.database.engine import Engine
from agents_app.database.sql import ENGINES
from agents_app.database.sqlite import ROWS_IN_ONE_STATEMENT
from tests.agents_app.database.item_table import (
    INSERT,
    NOON,
    TYPES,
    Elsewhere,
    blocked,
    columns,
    give_up_at_once,
    insert,
    names,
    stored,
)

# Texts that array literals, JSON or SQL could take for something else.
AWKWARD = 'a "quoted", {braced} \\ NULL \n %s ? ünïcode'

# --- the suite itself -----------------------------------------------------------------------


def test_every_backend_that_a_database_url_can_name_has_an_engine():
    urls = ("sqlite:////x/file.sqlite3", "postgresql://x/y")
    assert {database_settings(url)["ENGINE"] for url in urls} == ENGINES.keys()


def test_every_operation_of_the_contract_is_used_by_this_suite():
    files = Path(__file__).parent.glob("test_engine_*.py")
    tree = ast.parse("\n".join(file.read_text() for file in files))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    contract = {*Engine.__annotations__, *(name for name in vars(Engine) if name[0] != "_")}
    assert contract - used == set()


def test_an_engine_names_itself_as_django_does(engine: Engine):
    assert engine.name == engine.connection().vendor


# --- statements -----------------------------------------------------------------------------


def test_execute_opens_the_connection_and_returns_the_drivers_cursor(engine: Engine):
    connections[engine.alias].close()
    insert(engine, "a")
    cursor = engine.execute("UPDATE item SET size = %s WHERE name = %s", [7, "a"])
    assert cursor.rowcount == 1
    assert engine.execute("SELECT size, name FROM item", []).fetchall() == [(7, "a")]


def test_each_thread_has_a_connection_of_its_own_also_after_it_was_closed(engine: Engine):
    own = engine.wrapper()
    assert own is connections[engine.alias]
    engine.connection()
    own.close()
    assert engine.wrapper() is own
    assert engine.connection().is_usable()
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(engine.wrapper).result() is not own


def test_statements_belong_to_the_callers_transaction(engine: Engine):
    with pytest.raises(ZeroDivisionError), transaction.atomic(using=engine.alias):
        insert(engine, "a")
        engine.fetch_each(engine.with_rows(INSERT, TYPES, columns((5, NOON, "b", 0, b""))))
        raise ZeroDivisionError
    assert names(engine) == []


def test_errors_are_those_of_django(engine: Engine):
    insert(engine, "a")
    statement = ("INSERT INTO item (name) VALUES (%s) RETURNING id", ["a"])
    for attempt in (
        lambda: engine.execute(*statement),
        lambda: engine.fetch_all(*statement),
        lambda: engine.fetch_each([statement]),
    ):
        with pytest.raises(IntegrityError):
            attempt()
    with pytest.raises(DatabaseError):
        engine.execute("SELECT * FROM no_such_table", [])


def test_rows_come_from_fetch_all_and_from_each_statement_in_order(engine: Engine):
    for name in "abc":
        insert(engine, name)
    by_name = "SELECT name FROM item WHERE name = %s"
    assert engine.fetch_all("SELECT name, size FROM item ORDER BY name", []) == [
        ("a", 0), ("b", 0), ("c", 0),
    ]  # fmt: skip
    found = engine.fetch_each((by_name, [name]) for name in ("c", "x", "a"))
    assert found == [[("c",)], [], [("a",)]]
    assert engine.fetch_each([]) == []


@pytest.mark.parametrize("count", [1, 2, ROWS_IN_ONE_STATEMENT + 1])
def test_a_table_of_values_has_every_row_as_it_was_given(engine: Engine, count: int):
    rows = [
        (
            n,
            NOON + timedelta(microseconds=n) if n % 2 else None,
            f"{n}{AWKWARD}",
            -n,
            bytes([n % 9]),
        )
        for n in range(1, count + 1)
    ]
    found = engine.fetch_each(engine.with_rows(INSERT, TYPES, columns(*rows)))
    assert [key for part in found for (key,) in part] == [row[0] for row in rows]
    assert stored(engine) == rows


def test_a_column_with_one_value_for_all_rows_is_that_value_in_each(engine: Engine):
    rows = [(n, None, f"{n}", None, b"same") for n in (1, 2, 3)]
    engine.fetch_each(engine.with_rows(INSERT, TYPES, columns(*rows)))
    assert stored(engine) == rows


def test_some_numbers_may_be_missing_in_a_table_of_values(engine: Engine):
    rows = [(1, NOON, "a", 5, b""), (2, NOON, "b", None, b"")]
    engine.fetch_each(engine.with_rows(INSERT, TYPES, columns(*rows)))
    assert stored(engine) == rows


def test_a_table_of_values_leaves_out_rows_that_exist(engine: Engine):
    kept = insert(engine, "a")
    rows = [(kept + 1, NOON, "a", 9, b""), (kept + 2, NOON, "b", 9, b"")]
    found = engine.fetch_each(engine.with_rows(INSERT, TYPES, columns(*rows)))
    assert found == [[(kept + 2,)]]
    assert [(key, size) for key, _, _, size, _ in stored(engine)] == [(kept, 0), (kept + 2, 9)]


def test_a_table_of_values_updates_only_rows_that_match(engine: Engine):
    first, second = insert(engine, "a"), insert(engine, "b", NOON + timedelta(seconds=1))
    sql = """
        UPDATE item SET size = item.size + v.size, name = coalesce(v.name, item.name)
        FROM v WHERE item.id = v.id AND item.at = v.at RETURNING item.id"""
    rows = [(first, NOON, "changed", 3, b""), (second, NOON, None, 3, b"")]
    assert engine.fetch_each(engine.with_rows(sql, TYPES, columns(*rows))) == [[(first,)]]
    assert [(name, size) for _, _, name, size, _ in stored(engine)] == [("changed", 3), ("b", 0)]


# --- times ----------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [NOON, NOON.replace(microsecond=0)])
def test_a_time_comes_back_as_it_was_written(engine: Engine, moment: datetime):
    insert(engine, "a", moment.astimezone(timezone(timedelta(hours=9))))
    for expression in ("at", "max(at)", "coalesce(at, at)"):
        (read,) = engine.execute(f"SELECT {expression} FROM item GROUP BY at", []).fetchone()
        assert engine.from_database_time(read) == moment
        assert engine.from_database_time(read).utcoffset() == timedelta(0)


def test_times_compare_in_sql(engine: Engine):
    insert(engine, "a", NOON)
    insert(engine, "b", NOON + timedelta(microseconds=1))
    sql = "SELECT name FROM item WHERE at > %s"
    assert engine.fetch_all(sql, [engine.to_database_time(NOON)]) == [("b",)]


def test_a_column_of_times_is_read_at_once(engine: Engine):
    insert(engine, "a", NOON)
    insert(engine, "b", NOON)
    engine.execute("INSERT INTO item (name) VALUES ('c')", [])
    chosen = engine.select_columns(["name", "t.begun_at", "t.paused_until"])
    rows = engine.fetch_all(
        f"SELECT {', '.join(chosen)} FROM "
        "(SELECT name, at AS begun_at, at AS paused_until FROM item) AS t ORDER BY name",
        [],
    )
    read_names, begun, until = zip(*rows, strict=True)
    assert read_names == ("a", "b", "c")
    for column in (begun, until):
        assert list(engine.from_database_times(column)) == [NOON, NOON, None]


def test_seconds_between_two_times_are_signed_and_have_fractions(engine: Engine):
    sql = "SELECT {} FROM (SELECT min(at) AS first, max(at) AS last FROM item) AS t"
    insert(engine, "a", NOON)
    insert(engine, "b", NOON + timedelta(days=2, seconds=1.5))
    (later,) = engine.execute(sql.format(engine.seconds_between("first", "last")), []).fetchone()
    (earlier,) = engine.execute(sql.format(engine.seconds_between("last", "first")), []).fetchone()
    assert float(later) == pytest.approx(172_801.5, abs=0.001)
    assert float(earlier) == pytest.approx(-172_801.5, abs=0.001)


def test_a_time_bucket_is_the_number_of_the_interval_since_1970(engine: Engine):
    hour = NOON.replace(microsecond=0)
    for name, seconds in (("a", 1), ("b", 3599), ("c", 3601)):
        insert(engine, name, hour + timedelta(seconds=seconds))
    sql = f"SELECT name, {engine.time_bucket('at')} FROM item ORDER BY name"
    number = int(hour.timestamp()) // 3600
    found = {name: int(bucket) for name, bucket in engine.execute(sql, [3600])}
    assert found == {"a": number, "b": number, "c": number + 1}


def test_the_greatest_of_several_values_is_found_in_each_row(engine: Engine):
    for values in ((1, 2, 3), (9, 2, 3), (1, 8, 3)):
        sql = f"SELECT {engine.greatest('a', 'b', 'c')} FROM (SELECT %s AS a, %s AS b, %s AS c) t"
        assert engine.execute(sql, list(values)).fetchone() == (max(values),)


def test_the_difference_of_the_clocks_is_measured(engine: Engine):
    """SQLite has this host's clock, whatever time the caller takes it to be."""
    now = datetime.now(UTC)
    assert abs(engine.clock_difference(now)) < timedelta(seconds=5)
    behind = engine.clock_difference(now - timedelta(minutes=1))
    expected = timedelta(minutes=1) if engine.name == "postgresql" else timedelta(0)
    assert abs(behind - expected) < timedelta(seconds=5)


def test_a_server_that_takes_any_password_is_recognized(engine: Engine):
    """The server of the tests trusts everyone; test_passwords.py has a user whom it does not."""
    assert engine.accepts_wrong_password() == (engine.name == "postgresql")


def test_only_sqlite_has_a_file(engine: Engine):
    assert (engine.file() is not None) == (engine.name == "sqlite")


def test_the_space_of_deleted_rows_is_returned(engine: Engine):
    """SQLite returns it in steps after the file was rewritten once; a server does it by itself."""
    engine.return_free_space(rewrite=True)
    engine.execute("CREATE TABLE bulk (data text)", [])
    engine.execute("INSERT INTO bulk VALUES (%s)", ["x" * 1_000_000])
    engine.execute("DROP TABLE bulk", [])
    freed = engine.return_free_space()
    assert freed > 900_000 if engine.name == "sqlite" else freed == 0


# --- order of commits -----------------------------------------------------------------------


def test_ids_become_visible_in_order_exactly_where_the_engine_says_so(
    engine: Engine, elsewhere: Elsewhere
):
    """Without it, a reader of the newest rows has to wait at a gap."""
    elsewhere.begin(lambda: insert(engine, "first"))
    try:
        give_up_at_once(engine)
        assert blocked(engine, lambda: insert(engine, "second")) == engine.ids_appear_in_order
        assert names(engine) == ([] if engine.ids_appear_in_order else ["second"])
    finally:
        elsewhere.end()
        connections[engine.alias].close()


def test_commits_are_grouped_exactly_where_only_one_transaction_writes(
    engine: Engine, elsewhere: Elsewhere
):
    key = insert(engine, "a")
    elsewhere.begin(lambda: engine.execute("UPDATE item SET size = 1 WHERE id = %s", [key]))
    try:
        give_up_at_once(engine)
        assert blocked(engine, lambda: insert(engine, "b")) == engine.groups_commits
    finally:
        elsewhere.end()
        connections[engine.alias].close()


def test_transactions_that_write_a_table_are_known_until_they_end(
    engine: Engine, elsewhere: Elsewhere
):
    assert engine.writing_transactions("item") == frozenset()
    elsewhere.begin(lambda: insert(engine, "a"))
    # Where ids appear in order, no transaction can insert below a visible id.
    writing = engine.writing_transactions("item")
    assert len(writing) == (0 if engine.ids_appear_in_order else 1)
    elsewhere.end()
    assert engine.writing_transactions("item") == frozenset()


def test_the_newest_settled_id_is_the_newest_id_when_no_transaction_writes(engine: Engine):
    first = insert(engine, "a")
    last = insert(engine, "b")
    now = datetime.now(UTC)
    assert engine.newest_settled_id("item", 0, now) == last
    assert engine.newest_settled_id("item", first, now) == last
    assert engine.newest_settled_id("item", last, now) == last


def test_no_row_behind_an_open_transaction_is_settled(engine: Engine, elsewhere: Elsewhere):
    old = insert(engine, "old")
    late = elsewhere.begin(lambda: insert(engine, "late", datetime.now(UTC)))
    if not engine.ids_appear_in_order:
        insert(engine, "early", datetime.now(UTC))
    soon = datetime.now(UTC) + timedelta(minutes=1)
    assert engine.newest_settled_id("item", 0, soon) == old
    elsewhere.end()
    assert engine.newest_settled_id("item", 0, soon) >= late


# --- capabilities and connections -----------------------------------------------------------


def test_one_statement_writes_several_tables_exactly_where_the_engine_says_so(engine: Engine):
    insert(engine, "a")
    sql = """
        WITH changed AS (UPDATE item SET size = 5 RETURNING size)
        INSERT INTO item (name, size) SELECT 'b', changed.size FROM changed"""
    try:
        engine.execute(sql, [])
    except DatabaseError:
        assert not engine.writes_several_tables_at_once
    else:
        assert engine.writes_several_tables_at_once
        assert names(engine) == ["a", "b"]


def test_a_released_connection_is_opened_again_by_the_next_statement(engine: Engine):
    key = insert(engine, "a")
    engine.release_connection()
    assert engine.execute("SELECT id FROM item", []).fetchone() == (key,)


def test_a_released_connection_is_closed_where_the_server_limits_their_number(engine: Engine):
    driver: Any = engine.connection().connection
    engine.release_connection()
    closed = connections[engine.alias].connection is not driver
    assert closed == (engine.name == "postgresql")


def test_after_a_lost_connection_a_second_attempt_succeeds(engine: Engine):
    """A file has no server that could end the connection."""
    assert engine.connection_can_be_lost == (engine.name == "postgresql")
    if not engine.connection_can_be_lost:
        return
    address = connections.settings[engine.alias]
    (pid,) = engine.execute("SELECT pg_backend_pid()", []).fetchone()
    url = f"postgresql://postgres@127.0.0.1:{address['PORT']}/{address['NAME']}"
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        until = time.monotonic() + 10
        gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        while other.execute(gone, [pid]).fetchone() != (0,) and time.monotonic() < until:
            threading.Event().wait(0.01)
    with pytest.raises(OperationalError):
        insert(engine, "a")
    connections[engine.alias].close()
    insert(engine, "b")
    assert names(engine) == ["b"]
