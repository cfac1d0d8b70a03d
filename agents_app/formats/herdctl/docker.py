"""`docker` of a herdctl agent as `runtime` and `env` of Drover; pure."""

import re
from typing import Any

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtb]?)", re.IGNORECASE)
_BYTES = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_PERIOD = 100_000
DEFAULT_IMAGE = "anthropic/claude-code:latest"

# Fields without a counterpart: the value that means the same as in Drover, why, and what to do.
UNHONOURED: dict[str, tuple[Any, str, str]] = {
    "ephemeral": (True, "every run has a container of its own", "nothing to do"),
    "max_containers": (5, "a container is removed when its run ends", "nothing to do"),
    "cpu_shares": (None, "Drover limits CPUs, not shares", "set cpu_quota and cpu_period"),
    "workspace_mode": ("rw", "a run has a directory of its own", "nothing to do"),
    "tmpfs": (None, "only the directory for temporary files is in memory", "use TMPDIR"),
    "labels": (None, "Drover labels containers itself", "nothing to do"),
    "user": (None, "a container runs as Drover's own user, never as root", "nothing to do"),
    "volumes": (None, "a container sees only the files of its run", "copy files into the agent"),
    "ports": (None, "a container is not reachable from outside", "use a webhook source"),
    "host_config": (None, "containers have fixed limits", "use memory, pids_limit and cpu_quota"),
}


def runtime_of(docker: dict[str, Any]) -> dict[str, Any]:
    """The fields of `runtime`; the network `host` becomes `bridge`, which the caller reports."""
    if not docker.get("enabled"):
        return {"type": "process"}
    runtime: dict[str, Any] = {
        "type": "container",
        "image": docker.get("image") or docker.get("base_image") or DEFAULT_IMAGE,
        "memory": memory_of(docker.get("memory", "2g")),
        "network": "none" if docker.get("network") == "none" else "bridge",
    }
    if "pids_limit" in docker:
        runtime["pids_limit"] = docker["pids_limit"]
    if "cpu_quota" in docker:
        runtime["cpus"] = docker["cpu_quota"] / docker.get("cpu_period", _PERIOD)
    return runtime


def memory_of(text: str) -> str:
    """`2 g` and `1.5g` as an amount that Drover reads; the text itself if it is none."""
    found = _AMOUNT.fullmatch(text.strip())
    if not found:
        return text
    number, unit = found[1], found[2].lower()
    if "." not in number and unit != "t":
        return f"{number}{unit}"
    return f"{int(float(number) * _BYTES[unit])}b"
