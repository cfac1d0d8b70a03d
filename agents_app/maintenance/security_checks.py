"""The checks of doctor about ways past the sandbox of a run: open files, Redis, Docker's socket."""

import os
import pwd
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import redis

from agents_app.conf import CONF
from agents_app.installation import find_open_paths
from agents_app.maintenance.findings import OK, WARNING, WRONG, CheckResults
from agents_app.models import Agent
from agents_app.runners import DOCKER

MAX_PATHS_LISTED = 5


def check_permissions(_: datetime) -> CheckResults:
    """Other users must not read the database, logs, keys and sockets."""
    found = list(find_open_paths(CONF))
    for each in found[:MAX_PATHS_LISTED]:
        detail = f"other users may access {each.path} (mode {each.mode:04o})"
        yield WRONG, detail, f"start Drover again, or: chmod {each.private_mode:04o} {each.path}"
    if more := len(found[MAX_PATHS_LISTED:]):
        yield WRONG, f"other users may access {more} more paths", "start Drover again"
    if not found:
        yield OK, f"only this user may read {CONF.data}", ""


def accepts_without_password(url: str, seconds: float) -> bool:
    """Whether the Redis at the address, as redis-py reads it, serves a client without password."""
    pool = redis.ConnectionPool.from_url(
        url, socket_timeout=seconds, socket_connect_timeout=seconds
    )
    for name in ("username", "password"):
        pool.connection_kwargs.pop(name, None)
    try:
        with redis.Redis(connection_pool=pool) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        pool.disconnect()


def check_docker_socket(_: datetime) -> CheckResults:
    """A sandbox does not keep a run from connecting to a socket that its user may write to."""
    socket = Path(DOCKER.address.removeprefix("unix://"))
    if not DOCKER.address.startswith("unix://") or not socket.exists():
        return
    for user in sorted(_users_of_agents()):
        if _may_write(socket, user):
            yield (
                WARNING,
                f"agents run as {user}, who may write to {socket}: such an agent can become root",
                f"take {user} out of the group of the socket, or give these agents another "
                "runtime: container, or host-user with a user outside of that group",
            )


def _users_of_agents() -> Iterator[str]:
    """The user of each runtime that starts programs on this machine itself."""
    agents = Agent.objects.filter(removed_at__isnull=True, scale__gt=0)
    runtimes = [runtime for (runtime,) in agents.values_list("runtime")]
    if any(runtime.get("type", "process") == "process" for runtime in runtimes):
        yield _own_name()
    yield from {
        str(runtime.get("run_as", "drover-agent"))
        for runtime in runtimes
        if runtime.get("type") == "host-user"
    }


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"#{os.geteuid()}"


def _may_write(path: Path, user: str) -> bool:
    if user == _own_name():
        return os.access(path, os.W_OK)
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return False  # the check of agents names users that do not exist
    status = path.stat()
    if status.st_uid == entry.pw_uid:
        return bool(status.st_mode & stat.S_IWUSR)
    if status.st_gid in os.getgrouplist(entry.pw_name, entry.pw_gid):
        return bool(status.st_mode & stat.S_IWGRP)
    return bool(status.st_mode & stat.S_IWOTH)
