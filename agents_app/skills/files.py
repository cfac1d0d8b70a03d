"""Reads one file of a project safely: regular, small, UTF-8 and inside the project directory."""

import os
import stat
from pathlib import Path

from agents_app.skills.document import MAX_BYTES, SourceText, too_large_reason
from agents_app.skills.errors import SkillError, SourcePlace

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
}


def read_source(root: Path, path: Path) -> SourceText | None:
    """The text of the file, or None if it does not exist; otherwise raises a SkillError.

    `root` must be a real path without symlinks.
    """
    label = path.relative_to(root).as_posix()
    try:
        handle = _open_inside(root, _resolved(root, path))
    except FileNotFoundError:
        return None
    except _UnsafeSymlink as error:
        raise SkillError(str(error), SourcePlace(label)) from None
    except OSError as error:
        raise SkillError(f"cannot be opened: {error.strerror}", SourcePlace(label)) from None
    try:
        return SourceText(_decoded(_read(handle, label), label), path, label)
    except OSError as error:
        raise SkillError(f"cannot be read: {error.strerror}", SourcePlace(label)) from None
    finally:
        os.close(handle)


class _UnsafeSymlink(Exception):
    """A symlink that is dangling, a loop, or leads out of the project."""


def _resolved(root: Path, path: Path) -> Path:
    try:
        target = path.resolve(strict=True)
    except FileNotFoundError:
        if path.is_symlink():
            raise _UnsafeSymlink("is a dangling symlink; remove it or fix its target") from None
        raise
    except RuntimeError as error:  # a loop, in Python 3.11 and 3.12
        raise _UnsafeSymlink(f"is a symlink loop: {error}") from None
    if not target.is_relative_to(root):
        raise _UnsafeSymlink("is a symlink out of the project; copy the file instead")
    return target


def _open_inside(root: Path, path: Path) -> int:
    """Open directory by directory without following links, so a swap after the check fails."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *parents, name = path.relative_to(root).parts
    try:
        for part in parents:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, flags, dir_fd=directory)
            os.close(directory)
            directory = below
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=directory)
    finally:
        os.close(directory)


def _read(handle: int, label: str) -> bytes:
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "a special file")
        raise SkillError(f"is {kind}; only a regular file is read", SourcePlace(label))
    if found.st_nlink > 1:
        reason = f"has {found.st_nlink} hard links, so it may be a file from elsewhere; copy it"
        raise SkillError(reason, SourcePlace(label))
    if found.st_size > MAX_BYTES:
        raise SkillError(too_large_reason(found.st_size), SourcePlace(label))
    with os.fdopen(handle, "rb", closefd=False) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:  # the file has grown since fstat
        raise SkillError(too_large_reason(len(data)), SourcePlace(label))
    return data


def _decoded(data: bytes, label: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise SkillError(f"{reason}; save it as UTF-8", SourcePlace(label, line)) from None
