"""Gives the files of a directory to the user of a run."""

import contextlib
import os
from pathlib import Path


def change_owner(top: Path, uid: int, gid: int) -> None:
    """Change the owner of a directory and its files; requires root.

    A directory that the user owns already is not walked: it may hold a million files. Works on
    descriptors, and on the top last, so that no file can be replaced meanwhile. Only files of
    the directory's owner are changed: an earlier run may have made hard links to other files."""
    owner = top.stat().st_uid
    if owner == uid:
        return
    for _, _, files, directory in os.fwalk(top, topdown=False):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                _change_file_owner(name, directory, owner, uid, gid)
        os.fchown(directory, uid, gid)


def _change_file_owner(name: str, directory: int, owner: int, uid: int, gid: int) -> None:
    file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if os.fstat(file).st_uid == owner:
            # The file that was checked, not a file that has its name by now.
            os.chown(f"/proc/self/fd/{file}", uid, gid)
    finally:
        os.close(file)
