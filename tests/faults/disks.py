"""Small file systems that a test fills."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.parts.missing import missing


@contextmanager
def small_disk(directory: Path, size: int) -> Iterator[Path]:
    """Mount a file system of `size` bytes over the directory; its files are back at the end."""
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "drover-test", str(directory)]
    if os.getuid() != 0 or subprocess.run(argv, capture_output=True, check=False).returncode:
        missing("leave to mount a small disk", "run the tests as root")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(path: Path, rest: int) -> None:
    """Fill the file system of the path except for some bytes."""
    left = os.statvfs(path.parent)
    size = left.f_bavail * left.f_frsize - rest
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
