"""A directory changes hands before a run of another user: all of it that was its owner's."""

import contextlib
import os
from pathlib import Path


def give(top: Path, uid: int, gid: int) -> None:
    """Only root can. One that is given already is not looked through: it may hold a million files.

    By descriptors, and the top last, so that nobody can swap something in between. What an
    earlier run put there may be a second name of a file outside: only what was the owner's is
    given."""
    owner = top.stat().st_uid
    if owner == uid:
        return
    for _, _, files, directory in os.fwalk(top, topdown=False):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                _give_file(name, directory, owner, uid, gid)
        os.fchown(directory, uid, gid)


def _give_file(name: str, directory: int, owner: int, uid: int, gid: int) -> None:
    file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if os.fstat(file).st_uid == owner:
            # What was looked at, and nothing that has its name by now.
            os.chown(f"/proc/self/fd/{file}", uid, gid)
    finally:
        os.close(file)
