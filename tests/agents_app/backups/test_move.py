"""A SQLite database is moved to PostgreSQL with all rows, ids and sequences."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agents_app.installation import hold_lock
from tests.parts.postgres_part import PostgresServer
from tests.parts.stack_part import PrivateStack


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[PrivateStack]:
    """A stack with users, schedules, a binary output and a deleted row with the highest id."""
    stack = PrivateStack(tmp_path / "filled")
    stack.migrate()
    stack.rows(
        "INSERT INTO auth_user (id, username, password, first_name, last_name, email, "
        "is_superuser, is_staff, is_active, date_joined) VALUES (41, 'ann', 'x', '', '', "
        "'', 1, 0, 1, '2026-01-01 00:00:00.5')"
    )
    stack.rows(
        "INSERT INTO django_celery_beat_intervalschedule (id, every, period) "
        "VALUES (7, 3, 'seconds')"
    )
    stack.rows("DELETE FROM auth_user WHERE id = 0")
    stack.rows("UPDATE sqlite_sequence SET seq = 99 WHERE name = 'auth_user'")
    yield stack
    stack.close()


def test_rows_ids_types_and_sequences_are_moved(filled: PrivateStack, postgres: PostgresServer):
    url = postgres.new_database()
    done = filled.manage("move_to_postgres", url)
    assert done.returncode == 0, done.stderr
    assert "all counts are equal" in done.stdout and "DATABASE_URL" in done.stdout
    with psycopg.connect(url) as moved:
        user = "SELECT id, is_superuser, is_staff, extract(epoch FROM date_joined) FROM auth_user"
        assert moved.execute(user).fetchall() == [(41, True, False, 1767225600.5)]
        beat = "SELECT id, every FROM django_celery_beat_intervalschedule"
        assert moved.execute(beat).fetchall() == [(7, 3)]
        next_id = "SELECT nextval(pg_get_serial_sequence('auth_user', 'id'))"
        assert moved.execute(next_id).fetchall() == [(100,)]
    filled.env["DATABASE_URL"] = url
    assert "all migrations applied" in filled.manage("doctor").stdout


def test_a_move_is_refused_with_one_message(filled: PrivateStack, postgres: PostgresServer):
    full, empty = postgres.new_database(), postgres.new_database()
    PrivateStack(filled.data.parent / "other", full).migrate()
    closed = "postgresql://drover@127.0.0.1:1/none"
    bad = {
        "mysql://x/y": "the URL starts with 'mysql'",
        "sqlite:////tmp/x": "names SQLite",
        "postgresql://localhost": "has no database name",
        closed: "cannot be opened",
        full: "is not empty",
    }
    for url, message in bad.items():
        done = filled.manage("move_to_postgres", url)
        assert done.returncode == 1 and message in done.stderr, (url, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
    with psycopg.connect(full) as target:
        target.execute(
            "INSERT INTO django_migrations (app, name, applied) "
            "VALUES ('agents_app', '9999_newer', now())"
        )
    assert "newer version of Drover (9999_newer)" in filled.manage("move_to_postgres", full).stderr
    with hold_lock(filled.data):
        assert "already runs" in filled.manage("move_to_postgres", empty).stderr
    filled.rows(
        "INSERT INTO django_migrations (app, name, applied) "
        "VALUES ('agents_app', '9999_newer', '2026-01-01')"
    )
    assert "older than the schema" in filled.manage("move_to_postgres", empty).stderr


def test_a_move_that_fails_leaves_the_target_without_tables(
    filled: PrivateStack, postgres: PostgresServer
):
    """A foreign key to a row that does not exist: SQLite did not check it."""
    filled.rows("INSERT INTO auth_user_groups (user_id, group_id) VALUES (41, 12345)")
    url = postgres.new_database()
    done = filled.manage("move_to_postgres", url)
    assert done.returncode == 1 and "the target is empty again" in done.stderr
    with psycopg.connect(url) as target:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert target.execute(tables).fetchone() == (0,)
