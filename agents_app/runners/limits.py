"""Limits of memory, processes and CPU of a run, with control groups where the worker may use them;
elsewhere only the number of processes is limited."""

import contextlib
import os
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import structlog

from agents_app.runners.base import Limits

log = structlog.get_logger("drover.limits")
CPU_PERIOD_MICROSECONDS = 100_000
REMOVE_TRIES, REMOVE_SECONDS = 40, 0.005
CONTROLLERS = ("memory", "pids", "cpu")
Settings = dict[str, str]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups are created: one directory (version 2), or one per controller (version 1)."""

    version: int
    directories: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Confinement:
    """The control groups of one run."""

    version: int
    groups: Mapping[str, Path]

    def remove(self) -> None:
        """Remove the groups, whose processes must be dead."""
        for group in set(self.groups.values()):
            _remove(group)

    def reached_limit(self) -> str:
        """The limit that the run reached, and what to do; empty if it reached none."""
        if self._count("memory", "oom_kill"):
            return "oom_killed: the run took more than its `memory` allows; raise it, or use less"
        if self._count("pids", "max"):
            return "pids_limit: the run started more processes than its `pids_limit` allows"
        return ""

    def _count(self, controller: str, event: str) -> int:
        """How often a limit was reached: a line such as `oom_kill 1` in a file of the group."""
        if controller not in self.groups:
            return 0
        name = "memory.oom_control" if (controller, self.version) == ("memory", 1) else ""
        try:
            text = (self.groups[controller] / (name or f"{controller}.events")).read_text()
        except OSError:
            return 0
        counts = dict(line.split() for line in text.splitlines())
        return int(counts.get(event, 0))


def _remove(group: Path) -> None:
    """Processes that were just killed may still be in the group, so try several times."""
    for _ in range(REMOVE_TRIES):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(REMOVE_SECONDS)


def confine(
    pid: int, run_id: int, limits: Limits, *, by_process: bool = True
) -> Confinement | None:
    """Put a process that has just started, and its future children, under the limits.

    `by_process`: without control groups limit the number of processes of its user."""
    hierarchy = find_hierarchy()
    settings = group_settings(hierarchy.version, limits) if hierarchy else {}
    wanted = {name for name in settings if hierarchy and name in hierarchy.directories}
    try:
        if hierarchy and wanted:
            return _enter(hierarchy, {name: settings[name] for name in wanted}, pid, run_id)
    except OSError as error:
        log.warning("limits.not_set", run_id=run_id, error=str(error))
    if limits.pids and by_process:
        limit_processes(pid, limits.pids)
    return None


def limit_processes(pid: int, most: int) -> None:
    """The kernel counts all processes of a user, so the existing ones are added to the limit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        others = _processes_of(os.stat(f"/proc/{pid}").st_uid)  # noqa: PTH116
        resource.prlimit(pid, resource.RLIMIT_NPROC, (most + others, most + others))


def _processes_of(user: int) -> int:
    """Counts the owners of directories: reading every process costs more than starting one."""
    count = 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            count += entry.name.isdecimal() and entry.stat().st_uid == user
    return count


def group_settings(version: int, limits: Limits) -> dict[str, Settings]:
    """The files of each controller and their values."""
    found: dict[str, Settings] = {}
    if limits.memory_bytes:
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        found["memory"] = {name: str(limits.memory_bytes)}
    if limits.pids:
        found["pids"] = {"pids.max": str(limits.pids)}
    if limits.cpus:
        quota = int(limits.cpus * CPU_PERIOD_MICROSECONDS)
        found["cpu"] = (
            {"cpu.max": f"{quota} {CPU_PERIOD_MICROSECONDS}"}
            if version == 2
            else {"cpu.cfs_quota_us": str(quota)}
        )
    return found


def _enter(
    hierarchy: Hierarchy, settings: dict[str, Settings], pid: int, run_id: int
) -> Confinement:
    # With the worker's pid: two installations on one host may have the same run id.
    name = f"drover-{os.getpid()}-{run_id}"
    groups = {controller: hierarchy.directories[controller] / name for controller in settings}
    for controller, group in groups.items():
        group.mkdir(exist_ok=True)
        for file, value in settings[controller].items():
            _write(f"{group}/{file}", value)
    for group in set(groups.values()):
        _write(f"{group}/cgroup.procs", str(pid))
    return Confinement(hierarchy.version, groups)


def _write(path: str, value: str) -> None:
    """Without a Python file, which costs more than the kernel's work."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


@lru_cache(maxsize=1)
def find_hierarchy() -> Hierarchy | None:
    """The group of version 2 in DROVER_CGROUP, else the groups of this process."""
    named = os.environ.get("DROVER_CGROUP", "")
    if named:
        return _version_2(Path(named))
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = {part: path for _, part, path in (line.split(":", 2) for line in lines)}
    return _version_1(own) or _version_2(Path(f"/sys/fs/cgroup{own.get('', '')}"))


def _version_1(own: Mapping[str, str]) -> Hierarchy | None:
    found = {}
    for names, path in own.items():
        for controller in set(names.split(",")) & set(CONTROLLERS):
            directory = Path(f"/sys/fs/cgroup/{names}{path}")
            if os.access(directory, os.W_OK):
                found[controller] = directory
    return Hierarchy(1, found) if found else None


def _version_2(directory: Path) -> Hierarchy | None:
    """A group has only the controllers that its parent enables; there may be none."""
    try:
        enabled = (directory / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    usable = [name for name in CONTROLLERS if name in enabled]
    if not usable or not os.access(directory, os.W_OK):
        return None
    return Hierarchy(2, dict.fromkeys(usable, directory))
