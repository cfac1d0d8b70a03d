"""Which project a command is about, and where its data are.

The project is the nearest directory at or above the working directory that is one; its directory
`.drover` holds the data, or a file with the path of another data directory. Nothing is imported
that reads Drover's settings: they are read once, after the place is known.
"""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents_app.errors import ConfigError

STATE = ".drover"
POINTER = "data-directory"
ROOT = Path(__file__).resolve().parent.parent
CHECKOUT = ROOT if (ROOT / "manage.py").is_file() else None
# What makes a directory a project of another system that agents_app.formats reads.
OTHER_FORMATS = ("herdctl.yaml", "herdctl.yml", ".crew")
_IGNORE_ALL = "# Data of Drover, not part of the project.\n*\n"


@dataclass(frozen=True, slots=True)
class Place:
    project: Path
    data: Path
    # The data directory is neither the default nor the remembered one.
    is_new: bool = False

    @property
    def variables(self) -> dict[str, str]:
        return {"DROVER_PROJECT": str(self.project), "DROVER_DATA": str(self.data)}


def find_place(env: Mapping[str, str], directory: Path) -> Place:
    """The project and data directory of a command that is started in `directory`."""
    if named := env.get("DROVER_PROJECT"):
        project = (directory / named).resolve()
    else:
        project = find_project(directory)
    remembered = data_of(project)
    if named := env.get("DROVER_DATA"):
        data = (directory / named).resolve()
        return Place(project, data, is_new=data != remembered)
    return Place(project, remembered)


def find_project(directory: Path) -> Path:
    start = directory.resolve()
    for candidate in (start, *start.parents):
        if (candidate / STATE).is_dir() or is_project(candidate):
            return candidate
    if CHECKOUT and start.is_relative_to(CHECKOUT):
        return CHECKOUT / "examples"
    raise ConfigError(
        f"there is no project in {start} or above it. Create one with `drover init`, change to its "
        "directory, or name it: --project DIR"
    )


def is_project(directory: Path) -> bool:
    """Whether the files of a directory make it a project; an agent's own directory is none."""
    if (directory / "SKILL.md").is_file():
        return False
    agents = directory / "agents"
    has_config = (directory / "config.toml").is_file()
    if agents.is_dir() and (has_config or any(agents.glob("*/SKILL.md"))):
        return True
    return any((directory / name).exists() for name in OTHER_FORMATS)


def data_of(project: Path) -> Path:
    """The data directory that the project remembers, else the default."""
    pointer = project / STATE / POINTER
    try:
        text = pointer.read_text().strip()
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{pointer} cannot be read: {error}") from None
    if text:
        return (project / text).resolve()
    if CHECKOUT and project == CHECKOUT / "examples":
        return CHECKOUT / "var"
    return project / STATE / "data"


def remember(place: Place) -> None:
    """Write down the data directory, so that commands in other shells need no variables.

    Not one that cannot be used: each later command would fail because of it.
    """
    state = place.project / STATE
    inside = place.data.is_relative_to(state)
    if not (place.is_new or inside) or not place.project.is_dir():
        return
    if place.is_new:
        _create_data_directory(place.data)
    try:
        state.mkdir(exist_ok=True)
        ignore = state / ".gitignore"
        if not ignore.exists():
            ignore.write_text(_IGNORE_ALL)
        if place.is_new:
            (state / POINTER).write_text(f"{place.data}\n")
    except OSError as error:
        raise ConfigError(
            f"{state} cannot be written: {error.strerror}. Make the project writable, or set "
            "DROVER_PROJECT and DROVER_DATA in each shell and start with `drover manage up`."
        ) from None


def _create_data_directory(data: Path) -> None:
    try:
        data.mkdir(0o700, parents=True, exist_ok=True)
        if not os.access(data, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise ConfigError(
            f"the data directory {data} cannot be used: {error.strerror}. "
            "Make it writable, or set DROVER_DATA to another directory."
        ) from None
