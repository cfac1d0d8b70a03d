"""Reads processes from /proc, or with psutil where /proc lacks them; sends no signals."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import psutil

_RUN_ID = re.compile(rb"(?:^|\0)DROVER_RUN_ID=([0-9]{1,18})(?:\0|$)")
TICKS_PER_SECOND: int = os.sysconf("SC_CLK_TCK")


class ProcessInfo(NamedTuple):
    """A process when it was read; pid and start time together are never reused."""

    pid: int
    start_ticks: int
    parent: int
    session: int
    dead: bool

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start_ticks


def read_process(pid: int) -> ProcessInfo | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:
        return None
    # The name in parentheses may contain spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return ProcessInfo(pid, int(fields[19]), int(fields[1]), int(fields[3]), fields[0] in b"ZX")


def run_id_in_environment(pid: int) -> int | None:
    """DROVER_RUN_ID in the environment the process was started with; None if it is not readable."""
    try:
        found = _RUN_ID.search(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return None
    return int(found[1]) if found else None


def descendants(pid: int) -> list[ProcessInfo]:
    """All descendants of a process; incomplete if it starts processes meanwhile."""
    found: list[ProcessInfo] = []
    todo = children(pid)
    while todo:
        if (proc := read_process(todo.pop())) is not None:
            found.append(proc)
            todo += children(proc.pid)
    return found


def children(pid: int) -> list[int]:
    try:
        lists = [path.read_bytes() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    if lists:
        return [int(child) for text in lists for child in text.split()]
    return children_by_psutil(pid)


def children_by_psutil(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []
