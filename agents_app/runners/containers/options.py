"""The options of a container: what it may do and see."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from agents_app.conf import CONF
from agents_app.installation import read_secret_key
from agents_app.runners.base import Mount, RunSpec
from agents_app.runners.ownership import change_owner

INSTALLATION_LABEL, RUN_LABEL, TRACE_LABEL = "drover.install", "drover.run", "drover.trace"
AGENT_LABEL, ATTEMPT_LABEL = "drover.agent", "drover.attempt"

# If the worker is root: a uid that no user of the machine has.
AGENT_UID = 10001
# Programs are executed from the run's directory; /tmp is memory and for data only.
TMPFS = {"/tmp": "rw,noexec,nosuid,nodev,size=256m,mode=1777"}  # noqa: S108
OPEN_FILES = 1024
# Larger than the stored output of a run, because a worker that adopts a container reads its log
# from the beginning. Not compressed, because that costs more than writing.
LOG = {"type": "local", "config": {"max-size": "20m", "max-file": "2", "compress": "false"}}
# Variables of the server that mean nothing in an image.
_SERVER_VARIABLES = ("HOME", "USER", "LOGNAME")
_NETWORK = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@lru_cache(maxsize=1)
def installation_id() -> str:
    """Distinguishes the containers of installations that share an engine."""
    database = urlsplit(CONF.database_url)
    parts = (read_secret_key(CONF.data), database.hostname, database.port, database.path)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def installation_label() -> str:
    return f"{INSTALLATION_LABEL}={installation_id()}"


def run_labels(run_id: int, trace_id: str) -> tuple[str, ...]:
    """The labels that find the containers of a run."""
    return installation_label(), f"{RUN_LABEL}={run_id}", f"{TRACE_LABEL}={trace_id}"


def container_name(spec: RunSpec) -> str:
    """For people; Drover finds containers by their labels.

    The container of a hook may exist beside that of the program, so its name has a random end."""
    name = f"drover-{spec.run_id}-{spec.trace_id[:12]}".rstrip("-")
    return name if spec.adoptable else f"{name}-hook-{token_hex(4)}"


def container_user() -> tuple[int, int]:
    """Uid and gid: never root, and the owner of the run's files."""
    return (os.getuid(), os.getgid()) if os.getuid() else (AGENT_UID, AGENT_UID)


def options(spec: RunSpec, image_env: Mapping[str, str]) -> dict[str, Any]:
    uid, gid = container_user()
    program, *arguments = spec.argv
    return {
        "image": spec.runtime.image,
        # The entry point of the image would run another program than the agent's command.
        "entrypoint": [program],
        "command": arguments,
        "healthcheck": {"test": ["NONE"]},
        "environment": environment(spec, os.environ, image_env),
        "working_dir": str(spec.cwd),
        "user": f"{uid}:{gid}",
        "labels": {
            INSTALLATION_LABEL: installation_id(),
            RUN_LABEL: str(spec.run_id),
            TRACE_LABEL: spec.trace_id,
            AGENT_LABEL: spec.env.get("DROVER_AGENT", ""),
            ATTEMPT_LABEL: spec.env.get("DROVER_ATTEMPT", ""),
        },
        "stop_timeout": max(1, round(spec.grace_seconds)),
    }


def limits(spec: RunSpec) -> dict[str, Any]:
    runtime = spec.runtime
    if runtime.network == "host" or not _NETWORK.fullmatch(runtime.network):
        raise ValueError(
            f"runtime.network is {runtime.network!r}: use none, bridge or the name of a network"
        )
    return {
        "read_only": True,
        "tmpfs": TMPFS,
        "cap_drop": ["ALL"],
        # The default seccomp profile of the engine applies.
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
        "mounts": [_bind(mount) for mount in spec.mounts if _exists(mount)],
    }


def _exists(mount: Mount) -> bool:
    """False for the directory of an agent that was created without files."""
    return mount.path.is_absolute() and mount.path.exists()


def _bind(mount: Mount) -> dict[str, Any]:
    path = str(mount.path)
    return {"Type": "bind", "Source": path, "Target": path, "ReadOnly": not mount.writable}


def environment(
    spec: RunSpec, server: Mapping[str, str], image_env: Mapping[str, str]
) -> dict[str, str]:
    """The environment of the run with the PATH of the image and a HOME that is writable."""
    env = {k: v for k, v in spec.env.items() if k not in _SERVER_VARIABLES or v != server.get(k)}
    env.setdefault("HOME", str(spec.cwd))
    if "PATH" in image_env and "PATH" in env:
        agent_commands = env["PATH"].removesuffix(server.get("PATH", ""))
        if agent_commands != env["PATH"]:
            env["PATH"] = agent_commands + image_env["PATH"]
    return env


def change_owners(mounts: Iterable[Mount]) -> None:
    """Give writable directories to the user of the container; necessary only as root."""
    if os.getuid() != 0:
        return
    for mount in mounts:
        if mount.writable and mount.path.is_dir():
            change_owner(mount.path, *container_user())
