"""What /proc (or psutil, where /proc is poor) says about processes; reads only, signals nobody."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import psutil

_RUN_ID = re.compile(rb"(?:^|\0)DROVER_RUN_ID=([0-9]{1,18})(?:\0|$)")
TICKS_PER_SECOND: int = os.sysconf("SC_CLK_TCK")


class Proc(NamedTuple):
    """One process as it was when looked at; pid and start together are never reused."""

    pid: int
    start_ticks: int
    parent: int
    session: int
    dead: bool

    @property
    def identity(self) -> tuple[int, int]:
        return self.pid, self.start_ticks


def look_at(pid: int) -> Proc | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except OSError:
        return None
    # The name in parentheses may hold anything, also spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Proc(pid, int(fields[19]), int(fields[1]), int(fields[3]), fields[0] in b"ZX")


def named_run(pid: int) -> int | None:
    """The run id in the environment the process was started with, if we may read it."""
    try:
        found = _RUN_ID.search(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return None
    return int(found[1]) if found else None


def descendants(pid: int) -> list[Proc]:
    """Everything below a process, as far as it holds still while we look."""
    found: list[Proc] = []
    todo = children(pid)
    while todo:
        if (proc := look_at(todo.pop())) is not None:
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
