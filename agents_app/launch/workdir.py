"""The private directory of a run: created before the run with the prompt, removed after it.

It has a directory for signals, which runs without a gateway leave in files, and one for temporary
files, which runs in a sandbox use.
"""

import contextlib
import os
import shutil
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from agents_app.conf import CONF
from agents_app.installation import (
    create_private_directory,
    create_private_file,
    run_directories,
)

# System calls instead of pathlib: this is done for every run, and pathlib costs as much as the
# start of a process.
_RUNS = str(run_directories(CONF.data))
_PROMPT = "prompt.md"
_SECRETS = ".credentials"
_SIGNALS = "signals"
TEMPORARY_NAME = ".tmp"
_SPARE = "spare-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SpareDirectories:
    """Empty directories of ended runs for later runs of the same agent.

    To create and remove them costs more than to rename them, and the sandbox of the agent, whose
    rules name directories and not paths, is kept with them (agents_app.runners.sandbox_threads).
    Never for another agent: a program may change properties of a directory that are not checked
    here."""

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._lock = threading.Lock()
        # The agent that has used its directories last is the last one.
        self._paths: OrderedDict[int, list[str]] = OrderedDict()
        self._count = 0
        self._numbers = count(1)

    def take(self, agent_id: int, directory: str) -> bool:
        """Rename a spare directory of the agent to `directory`; False: there is none."""
        with self._lock:
            if not (paths := self._paths.get(agent_id)):
                return False
            path = paths.pop()
            self._count -= 1
        try:
            os.rename(path, directory)
        except OSError:  # `directory` exists, or another process has removed the spare one
            shutil.rmtree(path, ignore_errors=True)
            return False
        return True

    def keep(self, agent_id: int, directory: str) -> bool:
        """Keep the directory; False if it has other content than before the run."""
        try:
            if not _is_unused(directory):
                return False
            path = f"{_RUNS}/{_SPARE}{os.getpid()}-{next(self._numbers)}"
            os.unlink(f"{directory}/{_PROMPT}")
            os.rename(directory, path)
        except OSError:
            return False
        surplus = ""
        with self._lock:
            self._paths.setdefault(agent_id, []).append(path)
            self._paths.move_to_end(agent_id)
            self._count += 1
            if self._count > self._most:
                surplus = self._pop_oldest()
        if surplus:
            shutil.rmtree(surplus, ignore_errors=True)
        return True

    def _pop_oldest(self) -> str:
        while not self._paths[oldest := next(iter(self._paths))]:
            del self._paths[oldest]
        self._count -= 1
        return self._paths[oldest].pop(0)


SPARE_DIRECTORIES = SpareDirectories()


def _is_unused(directory: str) -> bool:
    """Whether nothing is left of a run but its prompt file. No process of the run lives."""
    names = os.listdir(directory)
    if not {_SIGNALS, TEMPORARY_NAME} <= set(names) or not _is_private_directory(directory):
        return False
    for name in names:
        if name == _PROMPT:
            continue
        below = f"{directory}/{name}"
        if name not in (_SIGNALS, TEMPORARY_NAME) or not _is_private_directory(below):
            return False
        if os.listdir(below):
            return False
    return True


def _is_private_directory(path: str) -> bool:
    """The directory of a run as another user belongs to that user."""
    status = os.lstat(path)
    return status.st_mode == stat.S_IFDIR | 0o700 and status.st_uid == os.geteuid()


def make_workdir(run_id: int, prompt: str, agent_id: int = 0) -> tuple[Path, Path]:
    """Create the directory and the prompt file, both readable by the owner only."""
    directory = f"{_RUNS}/{run_id}"
    if not SPARE_DIRECTORIES.take(agent_id, directory):
        # It may exist: a worker of this installation that died may have created it.
        create_private_directory(directory)
        create_private_directory(f"{directory}/{_SIGNALS}")
        create_private_directory(f"{directory}/{TEMPORARY_NAME}")
    workdir = Path(directory)
    return workdir, add_file(workdir, _PROMPT, prompt)


def workdir_of(run_id: int) -> tuple[Path, Path]:
    """The directory and the prompt file that `make_workdir` created."""
    workdir = Path(f"{_RUNS}/{run_id}")
    return workdir, workdir / _PROMPT


def add_file(workdir: Path, name: str, text: str) -> Path:
    """Write a file into the workdir, readable by the owner only.

    The run may own the directory by now: a file of that name is replaced, never written to."""
    path = f"{workdir}/{name}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(create_private_file(path), "wb") as file:
        _set_owner(workdir, file.fileno())
        file.write(text.encode(errors="replace"))
    return Path(path)


def write_secret(workdir: Path, name: str, text: str) -> Path:
    """Write a read-only file into the workdir; it is removed with the workdir."""
    create_private_directory(workdir / _SECRETS)
    directory = os.open(workdir / _SECRETS, _DIRECTORY)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        with open(create_private_file(name, 0o400, directory), "wb") as file:
            _set_owner(workdir, file.fileno())
            file.write(text.encode())
    finally:
        os.close(directory)
    return secret_file(workdir, name)


def secret_file(workdir: Path, name: str) -> Path:
    return workdir / _SECRETS / name


def _set_owner(workdir: Path, file: int) -> None:
    """Give the file to the owner of the workdir; necessary only as root."""
    if os.geteuid() == 0:
        owner = os.stat(workdir)
        os.fchown(file, owner.st_uid, owner.st_gid)


def remove_workdir(run_id: int, agent_id: int = 0) -> None:
    """Remove the directory, or keep it empty for a later run of the agent."""
    directory = f"{_RUNS}/{run_id}"
    if not (agent_id and SPARE_DIRECTORIES.keep(agent_id, directory)):
        shutil.rmtree(directory, ignore_errors=True)


def signal_directory(run_id: int) -> str:
    return f"{_RUNS}/{run_id}/{_SIGNALS}"


def leftover_workdirs() -> list[int]:
    """The run ids of all workdirs: of live runs, and of runs whose worker died."""
    with contextlib.suppress(FileNotFoundError):
        return [int(name) for name in os.listdir(_RUNS) if name.isdecimal()]
    return []


def remove_workdirs(run_ids: Iterable[int]) -> None:
    """Also the spare directories of processes that have ended."""
    for run_id in run_ids:
        remove_workdir(run_id)
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(_RUNS):
            if name.startswith(_SPARE) and not _is_alive(name.split("-")[1]):
                shutil.rmtree(f"{_RUNS}/{name}", ignore_errors=True)


def _is_alive(pid: str) -> bool:
    return pid != str(os.getpid()) and os.path.exists(f"/proc/{pid}")
