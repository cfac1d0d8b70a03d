"""Reads the file in which a run leaves metadata for its hooks.

The run controls its directory: links must not be followed, and pipes or endless files must not
block the reader.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents_app.errors import Refused
from agents_app.signals import MAX_METADATA_BYTES
from agents_app.webhooks.providers import Unparseable, read_json

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_metadata_file(workdir: Path, name: str, clean: Callable[[str], str]) -> dict[str, Any]:
    """The JSON object in the file, without secrets; empty if there is no file.

    Refused with the reason if the file cannot be used."""
    try:
        data = _read(workdir, name)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from None
    found = read_json(clean(data.decode(errors="replace")).encode())
    if isinstance(found, Unparseable):
        raise Refused(f"{name} is not valid JSON: {found.reason}")
    if not isinstance(found, dict):
        raise Refused(f"{name} is not a JSON object")
    return found


def _read(workdir: Path, name: str) -> bytes:
    *directories, last = name.split("/")
    directory = os.open(workdir, _DIRECTORY)
    try:
        for part in directories:
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        file = os.open(last, _FILE, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        status = os.fstat(file)
        # A hard link may be to a file that only the worker may read.
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise Refused(f"{name} is a link or no regular file")
        data = os.read(file, MAX_METADATA_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > MAX_METADATA_BYTES:
        raise Refused(f"{name} has more than {MAX_METADATA_BYTES} bytes")
    return data
