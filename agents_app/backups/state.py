"""The state directories of agents as a tar: regular files, directories and links that stay inside.

Agents may write while the tar is made: each file is copied first, so that its size is known.
"""

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

_IN_MEMORY_BYTES = 8_000_000


def pack_state(state: Path, target: Path) -> tuple[int, list[str]]:
    """The number of packed files, and the paths that were left out."""
    count, left_out = 0, []
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in _paths_below(state):
            try:
                packed = _pack(tar, path, state)
            except FileNotFoundError:
                continue  # an agent has removed it meanwhile
            except OSError:
                packed = False
            count += packed
            if not packed:
                left_out.append(str(path.relative_to(state)))
    return count, left_out


def unpack_state(source: Path, target: Path) -> int:
    """Extract into a new directory; a path or a link that leads out of it is refused."""
    target.mkdir(0o700)
    with tarfile.open(source, "r:") as tar:
        members = tar.getmembers()
        tar.extractall(target, members, numeric_owner=True, filter=_member_filter)  # noqa: S202
    return len(members)


def _member_filter(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    checked = tarfile.data_filter(member, path)
    if os.geteuid() or checked is None:
        return checked
    # Agents that run as other users own their directories.
    return checked.replace(uid=member.uid, gid=member.gid, mode=member.mode & 0o777, deep=False)


def _paths_below(state: Path) -> Iterator[Path]:
    for directory, directories, files in os.walk(state):
        for name in sorted(directories + files):
            yield Path(directory, name)


def _pack(tar: tarfile.TarFile, path: Path, state: Path) -> bool:
    status = path.lstat()
    name = str(path.relative_to(state))
    if stat.S_ISLNK(status.st_mode):
        target = Path(os.path.normpath(path.parent / path.readlink()))
        if path.readlink().is_absolute() or not target.is_relative_to(state):
            return False
        tar.addfile(tar.gettarinfo(path, arcname=name))
    elif stat.S_ISDIR(status.st_mode):
        tar.addfile(tar.gettarinfo(path, arcname=name))
    elif stat.S_ISREG(status.st_mode):
        _pack_file(tar, path, name)
    else:
        return False  # sockets, FIFOs and devices
    return True


def _pack_file(tar: tarfile.TarFile, path: Path, name: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file, _spool() as copy:
        shutil.copyfileobj(file, copy)
        info = tarfile.TarInfo(name)
        status = os.fstat(file.fileno())
        info.mode, info.mtime = stat.S_IMODE(status.st_mode), status.st_mtime
        info.uid, info.gid = status.st_uid, status.st_gid
        info.size = copy.tell()
        copy.seek(0)
        tar.addfile(info, copy)


def _spool() -> "tempfile.SpooledTemporaryFile[bytes]":
    return tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)
