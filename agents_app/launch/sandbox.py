"""The sandbox of a run on this host: which files it may read, execute and write."""

import contextlib
import os
import pwd
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents_app.conf import CONF
from agents_app.installation import database_files
from agents_app.launch.toolchains import USUAL_TOOLCHAINS, tool_paths, tool_variables
from agents_app.launch.workdir import TEMPORARY_NAME
from agents_app.models import DEFAULT_TENANT, Tenant
from agents_app.runners import Mount, Sandbox, is_below

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc"),
    *("/sys", "/nix", "/snap", "/run/current-system", "/run/systemd/resolve"),
)
# Where a home, of a service such as `daemon`, hides nothing: programs are there.
PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/games")
# Not all of /dev: root owns the disks there, and in /dev/pts are the terminals of people who work
# as the same user.
DEVICES = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "shm")
)
HOME_NAME = ".home"
# Toolchains that are installed or removed while a worker runs are found after this time.
KEEP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """The agent's `sandbox`."""

    mode: str = "auto"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


def sandbox_choice(stored: Mapping[str, Any]) -> SandboxChoice:
    """From the runtime that is stored with the agent; older rows have none."""
    return SandboxChoice(
        str(stored.get("mode", "auto")),
        tuple(stored.get("read", ())),
        tuple(stored.get("write", ())),
    )


def sandbox_of(
    choice: SandboxChoice,
    mounts: tuple[Mount, ...],
    path: str,
    program: str,
    run_as: str = "",
    project: str = "",
) -> Sandbox | None:
    """The sandbox with all paths of this host; None if the agent does without.

    The projects of other tenants than that with `project` are hidden."""
    if choice.mode == "off":
        return None
    slot = int(time.monotonic() / KEEP_SECONDS)
    hidden = (*hidden_paths(), *_other_projects(project, slot)) if project else hidden_paths()
    read, write = _paths(choice, path, program, hidden, slot)
    named = program.startswith("/") and not is_below(os.path.realpath(program), hidden)
    return Sandbox(
        own_read=(*_own(mounts, writable=False), *((program,) if named else ())),
        own_write=_own(mounts, writable=True),
        read=read,
        write=write,
        required=choice.mode == "required",
        hidden=hidden,
        homes=(homes := _homes(run_as)),
        toolchains=tuple(f"{home}/{name}" for home in homes for name in USUAL_TOOLCHAINS),
    )


@lru_cache(maxsize=1)
def hidden_paths() -> tuple[str, ...]:
    """The files of Drover, which no rule opens: the data directory, and a database elsewhere."""
    return (str(CONF.data), *(os.path.realpath(path) for path in database_files(CONF)))


@lru_cache(maxsize=64)
def _other_projects(own: str, _slot: int) -> tuple[str, ...]:
    others = Tenant.objects.exclude(project="").exclude(name=DEFAULT_TENANT)
    paths = {str(CONF.project), *others.values_list("project", flat=True)} - {own}
    return tuple(sorted(paths))


def _own(mounts: tuple[Mount, ...], *, writable: bool) -> tuple[str, ...]:
    """An agent without a directory has an empty path, which would be that of the worker."""
    paths = (mount.path for mount in mounts if mount.writable == writable)
    return tuple(str(path) for path in paths if path.is_absolute())


def sandbox_variables(state_dir: Path, workdir: Path, path: str) -> dict[str, str]:
    """A home and a directory for temporary files that the sandbox allows."""
    private = {"HOME": f"{state_dir}/{HOME_NAME}", "TMPDIR": f"{workdir}/{TEMPORARY_NAME}"}
    return private | tool_variables(path, user_home())


@lru_cache(maxsize=1)
def user_home() -> Path:
    return Path(os.path.expanduser("~")).resolve()  # noqa: PTH111


@lru_cache(maxsize=64)
def _homes(run_as: str) -> tuple[str, ...]:
    """Of the user of Drover and of the user of the run, if they are no system directories."""
    homes = {str(user_home()): None}
    with contextlib.suppress(KeyError):
        homes |= {os.path.realpath(pwd.getpwnam(run_as).pw_dir): None} if run_as else {}
    return tuple(home for home in homes if _is_private(home))


@lru_cache(maxsize=512)
def _paths(
    choice: SandboxChoice, path: str, program: str, hidden: tuple[str, ...], _slot: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What may be read and what may be written, beside the directories of the run itself."""
    home = str(user_home())
    never = (*hidden, home) if _is_private(home) else hidden
    on_path = os.pathsep.join((path, f"{sys.prefix}/bin", f"{sys.base_prefix}/bin"))
    tools = tool_paths(on_path, user_home(), SYSTEM, program)
    read = (
        *_without(SYSTEM, never),
        *_without((*tools, *_declared(choice.read)), hidden),
    )
    write = (*DEVICES, *_without(_declared(choice.write), hidden))
    return _outermost(read), tuple(dict.fromkeys(write))


def _is_private(home: str) -> bool:
    """The home of a service may be a system directory, or one above them."""
    if home in map(os.path.realpath, PROGRAMS):
        return False
    return not any(Path(top).is_relative_to(home) for top in SYSTEM)


def _declared(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.path.expanduser(path) for path in paths)  # noqa: PTH111


def _without(paths: Iterable[str], hidden: tuple[str, ...]) -> list[str]:
    """The paths that exist, without links. Of a directory that contains a hidden one, its other
    entries: a rule for a directory cannot leave a part of it out."""
    found: list[str] = []
    for path in paths:
        real = os.path.realpath(path)
        if is_below(real, hidden) or not os.path.lexists(real):
            continue
        if any(is_below(each, (real,)) for each in hidden):
            found += _without(_entries(real), hidden)
        else:
            found.append(real)
    return found


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without paths below others: every rule takes time in each start of a run."""
    unique = dict.fromkeys(paths)
    return tuple(
        path
        for path in unique
        if not any(is_below(path, (above,)) for above in unique if above != path)
    )


def _entries(directory: str) -> list[str]:
    """Not the links: one may lead to a directory above it. Empty if this user may not list it."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        return sorted(entry.path for entry in entries if not entry.is_symlink())
    return []
