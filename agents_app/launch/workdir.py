"""The private directory of a run: created before the run with the prompt, removed after it.

It has a directory for signals, which runs without a gateway leave in files.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
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
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_workdir(run_id: int, prompt: str) -> tuple[Path, Path]:
    """Create the directory and the prompt file, both readable by the owner only."""
    directory = f"{_RUNS}/{run_id}"
    # It may exist: a worker of this installation that died may have created it.
    create_private_directory(directory)
    create_private_directory(f"{directory}/{_SIGNALS}")
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


def remove_workdir(run_id: int) -> None:
    directory = f"{_RUNS}/{run_id}"
    try:
        os.unlink(f"{directory}/{_PROMPT}")
        os.rmdir(directory)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)


def signal_directory(run_id: int) -> str:
    return f"{_RUNS}/{run_id}/{_SIGNALS}"


def leftover_workdirs() -> list[int]:
    """The run ids of all workdirs: of live runs, and of runs whose worker died."""
    with contextlib.suppress(FileNotFoundError):
        return [int(name) for name in os.listdir(_RUNS) if name.isdecimal()]
    return []


def remove_workdirs(run_ids: Iterable[int]) -> None:
    for run_id in run_ids:
        remove_workdir(run_id)
