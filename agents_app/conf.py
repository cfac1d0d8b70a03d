"""Drover's settings, read once from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agents_app.errors import ConfigError
from agents_app.names import program_name

# The value of DROVER_GATEWAY_URL for runs that have no gateway.
NO_GATEWAY = "none"
ROOT = Path(__file__).resolve().parent.parent
# The source checkout that this code is part of; None when it was installed as a package.
CHECKOUT = ROOT if (ROOT / "manage.py").is_file() else None
# How messages name the command line.
PROGRAM = program_name()
# The same as a shell needs it, for texts that users copy.
TYPED_PROGRAM = f"python {PROGRAM}" if PROGRAM == "manage.py" else PROGRAM
_OF_DJANGO = frozenset({"migrate"})
_YES, _NO = frozenset(("1", "true", "yes", "on")), frozenset(("0", "false", "no", "off"))


@dataclass(frozen=True, slots=True)
class Conf:
    project: Path
    data: Path
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    public_url: str
    trusted_proxies: tuple[str, ...]
    outgoing_hosts: frozenset[str]
    flower: bool
    flower_port: int
    gateway_address: str
    database_url: str
    redis_url: str
    redis_prefix: str
    secret_variables: tuple[str, ...]
    workers: int
    concurrency: int
    debug: bool
    log_format: str
    log_level: str
    heartbeat_seconds: float
    missed_heartbeats: int
    lease_seconds: float
    reconcile_seconds: float
    spread_after: int
    spread_seconds: float
    grace_seconds: float
    body_seconds: float
    stream_heartbeat_seconds: float
    session_idle_minutes: int

    @property
    def gateway_url(self) -> str:
        """The address of the gateway for runs on this host; empty: there is no gateway."""
        if self.gateway_address == NO_GATEWAY:
            return ""
        host = "127.0.0.1" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104
        host = f"[{host}]" if ":" in host else host
        return self.gateway_address or f"http://{host}:{self.port}"

    @property
    def public_host(self) -> str:
        return urlsplit(self.public_url).hostname or ""

    @property
    def tls(self) -> bool:
        """Whether browsers use https, which a proxy terminates."""
        return self.public_url.startswith("https://")


def command_line(name: str) -> str:
    """How a message names a command; for `drover`, those of Django come after `manage`."""
    if PROGRAM == "manage.py":
        return f"{PROGRAM} {name}"
    words = f"manage {name}" if name in _OF_DJANGO else name.replace("_", "-")
    return f"{PROGRAM} {words}"


def read_conf(env: Mapping[str, str]) -> Conf:
    data = Path(env.get("DROVER_DATA") or _default_data(env)).resolve()
    # The name before version 0.2 is still read.
    renewal = _seconds(env, "DROVER_RENEW_SECONDS", 10)
    heartbeat = _seconds(env, "DROVER_HEARTBEAT_SECONDS", renewal)
    missed = _whole(env, "DROVER_MISSED_HEARTBEATS", 3, 2, 100)
    return Conf(
        project=Path(env.get("DROVER_PROJECT") or _default_project()).resolve(),
        data=data,
        host=env.get("DROVER_HOST") or "127.0.0.1",
        port=_whole(env, "DROVER_PORT", 8080, 0, 65535),
        allowed_hosts=tuple(_words(env, "DROVER_ALLOWED_HOSTS")),
        public_url=_public_url(env.get("DROVER_PUBLIC_URL", "")),
        trusted_proxies=tuple(map(_network, _words(env, "DROVER_TRUSTED_PROXIES"))),
        outgoing_hosts=frozenset(word.lower() for word in _words(env, "DROVER_OUTGOING_HOSTS")),
        flower=_yes(env, "DROVER_FLOWER", "yes"),
        flower_port=_whole(env, "DROVER_FLOWER_PORT", 5555, 0, 65535),
        gateway_address=env.get("DROVER_GATEWAY_URL", ""),
        database_url=env.get("DATABASE_URL") or f"sqlite:///{data / 'drover.sqlite3'}",
        redis_url=_redis_url(env.get("REDIS_URL", "")),
        redis_prefix=env.get("DROVER_REDIS_PREFIX") or "drover:",
        secret_variables=tuple(_words(env, "DROVER_SECRET_VARIABLES")),
        workers=_whole(env, "DROVER_WORKERS", 1, 1, 64),
        concurrency=_whole(env, "DROVER_CONCURRENCY", 16, 1, 1000),
        debug=_yes(env, "DROVER_DEBUG", "no"),
        log_format=_choice(env, "DROVER_LOG_FORMAT", "json", {"json", "human"}),
        log_level=_choice(env, "DROVER_LOG_LEVEL", "info", {"debug", "info", "warning", "error"}),
        heartbeat_seconds=heartbeat,
        missed_heartbeats=missed,
        lease_seconds=_seconds(env, "DROVER_LEASE_SECONDS", heartbeat * missed),
        reconcile_seconds=_seconds(env, "DROVER_RECONCILE_SECONDS", 10),
        spread_after=_whole(env, "DROVER_SPREAD_AFTER", 3, 0, 1_000_000),
        spread_seconds=_seconds(env, "DROVER_SPREAD_SECONDS", 30),
        grace_seconds=_seconds(env, "DROVER_GRACE_SECONDS", 10),
        body_seconds=_seconds(env, "DROVER_BODY_SECONDS", 10),
        stream_heartbeat_seconds=_seconds(env, "DROVER_STREAM_HEARTBEAT_SECONDS", 30),
        session_idle_minutes=_whole(env, "DROVER_SESSION_IDLE_MINUTES", 480, 1, 43_200),
    )


def _default_data(env: Mapping[str, str]) -> Path:
    """Of a process without DROVER_DATA; the command `drover` sets it to that of the project."""
    if CHECKOUT:
        return CHECKOUT / "var"
    return Path(env.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "drover"


def _default_project() -> Path:
    return CHECKOUT / "examples" if CHECKOUT else Path.cwd()


def _yes(env: Mapping[str, str], name: str, default: str) -> bool:
    word = (env.get(name) or default).lower()
    if word not in _YES | _NO:
        raise ConfigError(f"{name}={env[name]!r}: expected yes or no")
    return word in _YES


def _redis_url(url: str) -> str:
    scheme = url.partition("://")[0]
    if url and scheme not in {"redis", "rediss", "unix", "redis+socket", "sentinel"}:
        # The URL may contain a password: the message has only the scheme.
        raise ConfigError(
            f"REDIS_URL starts with {scheme!r}: expected redis://, rediss:// or unix://"
        )
    return url


def _public_url(url: str) -> str:
    try:
        parts = urlsplit(url.rstrip("/"))
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if url and not (usable and parts._replace(scheme="", netloc="").geturl() == ""):
        raise ConfigError(
            f"DROVER_PUBLIC_URL={url!r}: expected the address in the browser, without a path: "
            "https://drover.example.com"
        )
    return url.rstrip("/")


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as error:
        raise ConfigError(
            f"DROVER_TRUSTED_PROXIES: {error}: expected addresses or networks: 10.0.0.5,10.1.0.0/16"
        ) from None


def _words(env: Mapping[str, str], name: str) -> list[str]:
    return [word for part in env.get(name, "").split(",") if (word := part.strip())]


def _whole(env: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = env.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise ConfigError(f"{name}={text!r}: expected a whole number from {low} to {high}")
    return int(text)


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < 86_400:
        raise ConfigError(f"{name}={text!r}: expected seconds, more than 0 and less than 86400")
    return value


def _choice(env: Mapping[str, str], name: str, default: str, allowed: set[str]) -> str:
    text = env.get(name) or default
    if text not in allowed:
        raise ConfigError(f"{name}={text!r}: expected one of {', '.join(sorted(allowed))}")
    return text


def database_settings(url: str) -> dict[str, Any]:
    """Django's DATABASES entry for a DATABASE_URL."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(parts.path[1:] if parts.path.startswith("//") else parts.path)
    if parts.scheme in {"postgres", "postgresql"}:
        return _postgres(url)
    # The URL may contain a password: the message has only the scheme.
    raise ConfigError(
        f"DATABASE_URL starts with {parts.scheme or '(nothing)'!r}: "
        "expected sqlite:///path/to/file or postgresql://user:password@host:port/name"
    )


def _sqlite(path: str) -> dict[str, Any]:
    if not path.strip("/"):
        raise ConfigError("DATABASE_URL has no file name: expected sqlite:///path/to/file")
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            # IMMEDIATE: a transaction that reads and then writes must not fail at its first write.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "PRAGMA busy_timeout=20000; PRAGMA cache_size=-8000;",
        },
    }


def _postgres(url: str) -> dict[str, Any]:
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError as error:
        raise ConfigError(f"DATABASE_URL: {error}") from None
    if not parts.path.strip("/"):
        raise ConfigError("DATABASE_URL has no database name: expected postgresql://.../name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": port,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5, **dict(parse_qsl(parts.query))},
    }


CONF = read_conf(os.environ)
