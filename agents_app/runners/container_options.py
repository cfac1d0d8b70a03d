"""What a container may do and see: a RunSpec as the engine's options; pure but for the user."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from agents_app.conf import CONF
from agents_app.installation import read_secret_key
from agents_app.runners.base import Mount, RunSpec
from agents_app.runners.giving import give

INSTALL, RUN, TRACE = "drover.install", "drover.run", "drover.trace"
AGENT, ATTEMPT = "drover.agent", "drover.attempt"

# Of a worker that is root: nobody's on the machine, so that a container's user is nobody there.
AGENT_UID = 10001
# Programs that run what they write do so in their directory; /tmp is for data, as it is memory.
TMPFS = {"/tmp": "rw,noexec,nosuid,nodev,size=256m,mode=1777"}  # noqa: S108
OPEN_FILES = 1024
# More than a run's output may keep: what a worker reads again after another one's death begins
# at the beginning. Not compressed, which would cost more than writing it.
LOG = {"type": "local", "config": {"max-size": "20m", "max-file": "2", "compress": "false"}}
# The server's own, which mean nothing in an image.
_SERVERS = ("HOME", "USER", "LOGNAME")
_NETWORK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@lru_cache(maxsize=1)
def install_id() -> str:
    """Tells this installation's containers from those of others that share the engine."""
    database = urlsplit(CONF.database_url)
    parts = (read_secret_key(CONF.data), database.hostname, database.port, database.path)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def our_label() -> str:
    return f"{INSTALL}={install_id()}"


def run_labels(run_id: int, trace_id: str) -> tuple[str, ...]:
    """What finds the containers of one run."""
    return our_label(), f"{RUN}={run_id}", f"{TRACE}={trace_id}"


def container_name(spec: RunSpec) -> str:
    """Says to people what it is; the labels are what Drover finds it by."""
    return f"drover-{spec.run_id}-{spec.trace_id[:12]}".rstrip("-")


def container_user() -> tuple[int, int]:
    """Never root, and one that may read the run's own files."""
    return (os.getuid(), os.getgid()) if os.getuid() else (AGENT_UID, AGENT_UID)


def options(spec: RunSpec, image_env: Mapping[str, str]) -> dict[str, Any]:
    uid, gid = container_user()
    program, *arguments = spec.argv
    return {
        "image": spec.runtime.image,
        # An image's own entry point would run something else than the agent's command.
        "entrypoint": [program],
        "command": arguments,
        "healthcheck": {"test": ["NONE"]},
        "environment": environment(spec, os.environ, image_env),
        "working_dir": str(spec.cwd),
        "user": f"{uid}:{gid}",
        "labels": {
            INSTALL: install_id(),
            RUN: str(spec.run_id),
            TRACE: spec.trace_id,
            AGENT: spec.env.get("DROVER_AGENT", ""),
            ATTEMPT: spec.env.get("DROVER_ATTEMPT", ""),
        },
        "stop_timeout": max(1, round(spec.grace_seconds)),
    }


def limits(spec: RunSpec) -> dict[str, Any]:
    runtime = spec.runtime
    if runtime.network == "host" or not _NETWORK.fullmatch(runtime.network):
        raise ValueError(
            f"runtime.network is {runtime.network!r}: use none, bridge or a network of your own"
        )
    return {
        "read_only": True,
        "tmpfs": TMPFS,
        "cap_drop": ["ALL"],
        # The engine's own seccomp profile applies where no other is named.
        "security_opt": ["no-new-privileges"],
        "pids_limit": runtime.pids_limit,
        "mem_limit": runtime.memory,
        "memswap_limit": runtime.memory,
        "nano_cpus": None if runtime.cpus is None else round(runtime.cpus * 1e9),
        "ulimits": [{"name": "nofile", "soft": OPEN_FILES, "hard": OPEN_FILES}],
        "network_mode": runtime.network,
        "ipc_mode": "private",
        "init": True,
        "log_config": LOG,
        "restart_policy": {"Name": "no"},
        "mounts": [_bind(mount) for mount in spec.mounts if _is_there(mount)],
    }


def _is_there(mount: Mount) -> bool:
    """An agent that was made without files has no directory either."""
    return mount.path.is_absolute() and mount.path.exists()


def _bind(mount: Mount) -> dict[str, Any]:
    path = str(mount.path)
    return {"Type": "bind", "Source": path, "Target": path, "ReadOnly": not mount.writable}


def environment(
    spec: RunSpec, server: Mapping[str, str], image_env: Mapping[str, str]
) -> dict[str, str]:
    """The run's own, but programs are where the image has them, and home is what can be written."""
    env = {k: v for k, v in spec.env.items() if k not in _SERVERS or v != server.get(k)}
    env.setdefault("HOME", str(spec.cwd))
    if "PATH" in image_env and "PATH" in env:
        agent_commands = env["PATH"].removesuffix(server.get("PATH", ""))
        if agent_commands != env["PATH"]:
            env["PATH"] = agent_commands + image_env["PATH"]
    return env


def give_all(mounts: Iterable[Mount]) -> None:
    """What a container may write belongs to its user; only root can, and only root has to."""
    if os.getuid() != 0:
        return
    for mount in mounts:
        if mount.writable and mount.path.is_dir():
            give(mount.path, *container_user())
