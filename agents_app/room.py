"""The private directory of a run: made with the prompt in it before the run, removed after it.

In it is a directory for signals, for runs that tell them by writing files.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from agents_app.conf import CONF

# Plain system calls, not pathlib: this is done for every run, and costs as much as starting one.
_RUNS = str(CONF.data / "runs")
_PROMPT = "prompt.md"
_SECRETS = ".credentials"
_SIGNALS = "signals"


def make_room(run_id: int, prompt: str) -> tuple[Path, Path]:
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


def add_file(room: Path, name: str, text: str) -> Path:
    """What the run finds in its directory, for the owner's eyes only."""
    path = f"{room}/{name}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(text.encode(errors="replace"))
    return Path(path)


def write_secret(room: Path, name: str, text: str) -> Path:
    """A file beside the prompt that nobody can change, and that goes with the room."""
    directory = room / _SECRETS
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / name
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o400), "wb") as file:
        file.write(text.encode())
    return path


def remove_room(run_id: int) -> None:
    directory = f"{_RUNS}/{run_id}"
    try:
        os.unlink(f"{directory}/{_PROMPT}")
        os.rmdir(directory)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)


def signal_directory(run_id: int) -> str:
    return f"{_RUNS}/{run_id}/{_SIGNALS}"


def left_rooms() -> list[int]:
    """Runs whose worker died before it could tidy up, and those that go on."""
    with contextlib.suppress(FileNotFoundError):
        return [int(name) for name in os.listdir(_RUNS) if name.isdecimal()]
    return []


def remove_rooms(run_ids: Iterable[int]) -> None:
    for run_id in run_ids:
        remove_room(run_id)
