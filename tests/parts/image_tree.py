"""The files of an image that contains busybox and given programs of this machine."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from agents_app.agent_bin import http_post
from tests.parts.missing import missing

AGENT_UID = 10001
ALWAYS = ("id", "flock")  # what busybox does not have, or not as it is needed
DIRECTORIES = ("bin", "etc", "tmp", "usr/bin", "proc", "dev", "sys")
# Prints the files that the interpreter loads for the agents' client.
LOADED = """
import sys
sys.path.append({place!r})
import http_post
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(*[file for file in files if file and file != http_post.__file__], sep="\\n")
"""


def busybox_binary() -> Path:
    """Busybox, which must be linked statically to run in an empty image."""
    found = shutil.which("busybox")
    if found:
        linked = subprocess.run(["ldd", found], capture_output=True, text=True, check=False)
        if linked.returncode != 0:
            return Path(found)
    return missing("a static busybox", "apt install busybox-static")


def root_tree(programs: Sequence[str]) -> bytes:
    """A tar of busybox and programs of this machine with all the files that they need."""
    busybox = busybox_binary()
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in DIRECTORIES:
            _add(tar, name, kind=tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755)
        users = f"root:x:0:0::/:/bin/sh\nagent:x:{AGENT_UID}:{AGENT_UID}::/tmp:/bin/sh\n"
        _add(tar, "etc/passwd", users.encode(), mode=0o644)
        _add(tar, "bin/busybox", busybox.read_bytes())
        # A setuid program: it runs as root unless privileges cannot be gained. Busybox is no
        # substitute, because it drops such rights itself.
        _add(tar, "bin/rootly", Path("/usr/bin/id").read_bytes(), mode=0o4755)
        for applet in applets.split():
            if applet != "busybox":
                _add(tar, f"bin/{applet}", kind=tarfile.SYMTYPE, link="busybox")
        if "python3" in programs:
            _add(tar, "usr/bin/python3", kind=tarfile.SYMTYPE, link=_python())
        for path in {file for program in (*ALWAYS, *programs) for file in _files_of(program)}:
            _add(tar, path.lstrip("/"), Path(path).read_bytes())
    return file.getvalue()


def _add(
    tar: tarfile.TarFile,
    name: str,
    data: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o755,
    link: str = "",
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), link
    tar.addfile(entry, io.BytesIO(data))


def _files_of(program: str) -> list[str]:
    if program == "python3":
        return _files_of_python()
    path = shutil.which(program) or missing(program, f"apt install {program}")
    return [path, *_libraries(path)]


def _files_of_python() -> list[str]:
    """The interpreter of the tests without most of its library, which is a hundred times larger."""
    argv = [_python(), "-IS", "-c", LOADED.format(place=os.path.dirname(http_post.__file__))]
    loaded = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    binaries = [_python(), *(file for file in loaded if file.endswith(".so"))]
    return [_python(), *loaded, *(file for binary in binaries for file in _libraries(binary))]


def _python() -> str:
    """The interpreter outside of any virtual environment."""
    return os.path.realpath(sys.executable)


def _libraries(binary: str) -> list[str]:
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
    words = (word for line in listed.splitlines() for word in line.split())
    return [word for word in words if word.startswith("/")]
