"""The private directory of a run: made with the prompt in it before the run, removed after it.

In it is a directory for signals, for runs that tell them by writing files.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from agents_app.conf import CONF
from agents_app.installation import create_private_file

# Plain system calls, not pathlib: this is done for every run, and costs as much as starting one.
_RUNS = str(CONF.data / "runs")
_PROMPT = "prompt.md"
_SECRETS = ".credentials"
_SIGNALS = "signals"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_workdir(run_id: int, prompt: str) -> tuple[Path, Path]:
    """The directory and the prompt file in it, both for the owner's eyes only."""
    directory = f"{_RUNS}/{run_id}"
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass  # left behind by a worker of the same installation that died
    except FileNotFoundError:
        os.makedirs(directory, 0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(f"{directory}/{_SIGNALS}", 0o700)
    room = Path(directory)
    return room, add_file(room, _PROMPT, prompt)


def workdir_of(run_id: int) -> tuple[Path, Path]:
    """As `make_room` left it."""
    room = Path(f"{_RUNS}/{run_id}")
    return room, room / _PROMPT


def add_file(room: Path, name: str, text: str) -> Path:
    """What the run finds in its directory, for the owner's eyes only.

    The run may own the directory by now: what it put there is replaced, never written through."""
    path = f"{room}/{name}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(create_private_file(path), "wb") as file:
        _give_with(room, file.fileno())
        file.write(text.encode(errors="replace"))
    return Path(path)


def write_secret(room: Path, name: str, text: str) -> Path:
    """A file beside the prompt that nobody can change, and that goes with the room."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(room / _SECRETS, 0o700)
    directory = os.open(room / _SECRETS, _DIRECTORY)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        with open(create_private_file(name, 0o400, directory), "wb") as file:
            _give_with(room, file.fileno())
            file.write(text.encode())
    finally:
        os.close(directory)
    return secret_file(room, name)


def secret_file(room: Path, name: str) -> Path:
    return room / _SECRETS / name


def _give_with(room: Path, file: int) -> None:
    """Whoever the room was given to has this, too; only root gives."""
    if os.geteuid() == 0:
        owner = os.stat(room)
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
    """Runs whose worker died before it could tidy up, and those that go on."""
    with contextlib.suppress(FileNotFoundError):
        return [int(name) for name in os.listdir(_RUNS) if name.isdecimal()]
    return []


def remove_workdirs(run_ids: Iterable[int]) -> None:
    for run_id in run_ids:
        remove_workdir(run_id)
