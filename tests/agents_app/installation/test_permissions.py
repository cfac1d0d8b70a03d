"""The files of an installation that only this user may read, whatever the umask was."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agents_app.conf import Conf, read_conf
from agents_app.errors import ConfigError
from agents_app.installation.permissions import (
    allow_passage,
    create_data_directory,
    create_private_database,
    find_open_paths,
    repair_permissions,
)

FILES = (
    *("drover.sqlite3", "drover.sqlite3-wal", "drover.sqlite3-shm", "secret_key"),
    *("credential_keys", "flower.password", "redis.password", "up.lock", "beat.ready"),
    *("logs/gateway.log", "logs/gateway.log.1", "redis/redis.conf", "redis/appendonlydir/a.aof"),
)
DIRECTORIES = ("", "logs", "redis", "redis/appendonlydir", "runs", "state")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.fixture(autouse=True)
def _umask_of_zero() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    return read_conf({"DROVER_DATA": str(tmp_path / "data")})


@pytest.fixture
def old(conf: Conf) -> Conf:
    """An installation whose files all users may read."""
    for name in DIRECTORIES:
        (conf.data / name).mkdir(0o755)
    for name in FILES:
        (conf.data / name).touch(0o644)
    return conf


def test_a_new_database_and_the_files_beside_it_are_private(conf: Conf):
    create_private_database(conf)
    assert mode(conf.data) == 0o700
    with closing(sqlite3.connect(conf.data / "drover.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (a)")
        found = {path.name: mode(path) for path in conf.data.iterdir()}
    names = ("drover.sqlite3", "drover.sqlite3-wal", "drover.sqlite3-shm")
    assert found == dict.fromkeys(names, 0o600)


def test_an_existing_database_is_not_changed(conf: Conf):
    conf.data.mkdir()
    (conf.data / "drover.sqlite3").write_bytes(b"rows")
    create_private_database(conf)
    assert (conf.data / "drover.sqlite3").read_bytes() == b"rows"


def test_a_database_elsewhere_is_checked_and_postgresql_has_no_file(old: Conf, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.sqlite3"
    elsewhere.touch(0o644)
    env = {"DROVER_DATA": str(old.data), "DATABASE_URL": f"sqlite:///{elsewhere}"}
    assert elsewhere in [each.path for each in find_open_paths(read_conf(env))]
    env["DATABASE_URL"] = "postgresql://u@h/d"
    create_private_database(read_conf(env))
    assert repair_permissions(read_conf(env))
    assert mode(elsewhere) == 0o644


def test_the_files_of_an_old_installation_are_found_and_repaired(old: Conf):
    found = {each.path: each.private_mode for each in find_open_paths(old)}
    passed = {"": 0o711, "runs": 0o711, "state": 0o711}
    expected = dict.fromkeys(FILES, 0o600) | dict.fromkeys(DIRECTORIES, 0o700) | passed
    assert found == {old.data / name: mode for name, mode in expected.items()}
    assert repair_permissions(old, passage=False) >= len(FILES) + len(DIRECTORIES)
    assert list(find_open_paths(old)) == []
    assert {mode(old.data / name) for name in FILES} == {0o600}
    assert {mode(old.data / name) for name in DIRECTORIES} == {0o700}
    assert repair_permissions(old, passage=False) == 0


def test_other_users_pass_only_where_their_runs_must(old: Conf):
    repair_permissions(old, passage=True)
    passed = [name for name in DIRECTORIES if mode(old.data / name) == 0o711]
    assert passed == ["", "runs", "state"]
    repair_permissions(old)
    assert mode(old.data) == 0o711
    repair_permissions(old, passage=False)
    assert mode(old.data) == 0o700
    allow_passage(old.data)
    assert [mode(old.data / name) for name in passed] == [0o711] * 3


def test_a_link_and_a_shared_directory_stay_as_they_are(conf: Conf, tmp_path: Path):
    conf.data.mkdir()
    conf.data.chmod(0o1777)
    (tmp_path / "foreign").touch(0o644)
    (conf.data / "secret_key").symlink_to(tmp_path / "foreign")
    assert [each.path for each in find_open_paths(conf)] == [conf.data]
    assert repair_permissions(conf, passage=False) == 0
    assert (mode(conf.data), mode(tmp_path / "foreign")) == (0o1777, 0o644)


def test_a_data_directory_that_cannot_be_created_is_named():
    with pytest.raises(ConfigError, match=r"/proc/drover.*DROVER_DATA"):
        create_data_directory(Path("/proc/drover"))
