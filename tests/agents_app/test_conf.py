"""Settings from the environment: defaults that work, and refusals that say what was expected."""

from pathlib import Path

import pytest

from agents_app.conf import ROOT, database_settings, read_conf
from agents_app.errors import ConfigError


def test_an_empty_environment_is_a_working_one():
    conf = read_conf({})
    assert (conf.project, conf.data) == (ROOT / "examples", ROOT / "var")
    assert (conf.port, conf.workers, conf.concurrency) == (8080, 1, 16)
    assert (conf.heartbeat_seconds, conf.missed_heartbeats, conf.lease_seconds) == (10, 3, 30)
    assert conf.stream_heartbeat_seconds == 30
    assert conf.database_url == f"sqlite:///{ROOT}/var/drover.sqlite3"
    assert conf.host == "127.0.0.1"


def test_an_empty_variable_means_the_default():
    names = ["DROVER_DATA", "DROVER_PORT", "DROVER_LEASE_SECONDS", "DATABASE_URL"]
    assert read_conf(dict.fromkeys(names, "")) == read_conf({})


@pytest.mark.parametrize(
    ("env", "heartbeat", "lease"),
    [
        ({"HEARTBEAT_SECONDS": "2"}, 2, 6),
        ({"MISSED_HEARTBEATS": "5"}, 10, 50),
        ({"HEARTBEAT_SECONDS": "0.5", "MISSED_HEARTBEATS": "4"}, 0.5, 2),
        ({"RENEW_SECONDS": "4"}, 4, 12),
        ({"RENEW_SECONDS": "4", "HEARTBEAT_SECONDS": "2"}, 2, 6),
        ({"HEARTBEAT_SECONDS": "2", "LEASE_SECONDS": "60"}, 2, 60),
    ],
)
def test_a_lease_lasts_for_a_number_of_heartbeats(env, heartbeat, lease):
    conf = read_conf({f"DROVER_{name}": text for name, text in env.items()})
    assert (conf.heartbeat_seconds, conf.lease_seconds) == (heartbeat, lease)


def test_where_runs_find_the_gateway_is_said_or_follows_from_where_it_listens():
    assert read_conf({}).gateway_url == "http://127.0.0.1:8080"
    assert read_conf({"DROVER_HOST": "::", "DROVER_PORT": "1"}).gateway_url == "http://127.0.0.1:1"
    assert read_conf({"DROVER_HOST": "::1"}).gateway_url == "http://[::1]:8080"
    assert read_conf({"DROVER_GATEWAY_URL": "none"}).gateway_url == ""
    said = {"DROVER_GATEWAY_URL": "https://drover.lan", "DROVER_PORT": "1"}
    assert read_conf(said).gateway_url == "https://drover.lan"


def test_names_and_prefixes_are_read_from_what_is_given_and_nothing_else(monkeypatch):
    """Guard: read os.environ anywhere in there and a test, or `up`, gets foreign values."""
    for name in ("ALLOWED_HOSTS", "REDIS_PREFIX", "GATEWAY_URL"):
        monkeypatch.setenv(f"DROVER_{name}", "another's")
    conf = read_conf({})
    assert (conf.allowed_hosts, conf.redis_prefix) == ((), "drover:")
    assert conf.gateway_url == "http://127.0.0.1:8080"
    conf = read_conf({"DROVER_ALLOWED_HOSTS": "a.lan, b.lan,", "DROVER_REDIS_PREFIX": "x:"})
    assert (conf.allowed_hosts, conf.redis_prefix) == (("a.lan", "b.lan"), "x:")


def test_paths_are_made_absolute():
    assert read_conf({"DROVER_DATA": "x"}).data == Path("x").resolve()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DROVER_PORT", "http"),
        ("DROVER_PORT", "65536"),
        ("DROVER_PORT", "-1"),
        ("DROVER_PORT", "\uff18\uff10"),
        ("DROVER_WORKERS", "0"),
        ("DROVER_CONCURRENCY", "1.5"),
        ("DROVER_LEASE_SECONDS", "0"),
        ("DROVER_LEASE_SECONDS", "nan"),
        ("DROVER_LEASE_SECONDS", "inf"),
        ("DROVER_HEARTBEAT_SECONDS", "soon"),
        ("DROVER_MISSED_HEARTBEATS", "1"),
        ("DROVER_RENEW_SECONDS", "soon"),
        ("DROVER_RENEW_SECONDS", "nan"),
        ("DROVER_LOG_FORMAT", "xml"),
        ("DROVER_LOG_LEVEL", "loud"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(name, text):
    with pytest.raises(ConfigError, match=f"{name}='{text}': expected"):
        read_conf({name: text})


def test_decimals_are_fine_where_seconds_are_asked():
    assert read_conf({"DROVER_RECONCILE_SECONDS": "0.5"}).reconcile_seconds == 0.5


def test_a_sqlite_address_is_a_path():
    settings = database_settings("sqlite:////srv/drover/x.sqlite3")
    assert settings["NAME"] == "/srv/drover/x.sqlite3"
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in settings["OPTIONS"]["init_command"]


def test_a_postgresql_address_is_taken_apart():
    url = "postgresql://dro%40ver:p%2Fw@db.example:6543/fleet?sslmode=require"
    settings = database_settings(url)
    assert (settings["USER"], settings["PASSWORD"]) == ("dro@ver", "p/w")
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("db.example", 6543, "fleet")
    assert settings["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://root:canary@db/x", "starts with 'mysql'"),
        ("canary", "starts with '\\(nothing\\)'"),
        ("sqlite:///", "has no file name"),
        ("postgresql://u:canary@db:99999/x", "ort"),
        ("postgresql://u:canary@db:port/x", "DATABASE_URL: "),
        ("postgresql://u:canary@db", "has no database name"),
    ],
)
def test_a_database_address_that_cannot_be_used_is_refused_without_its_password(url, message):
    with pytest.raises(ConfigError, match=message) as refusal:
        database_settings(url)
    assert "canary" not in str(refusal.value)
