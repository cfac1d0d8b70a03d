"""A real Docker engine of a test session, private, with an image made from nothing."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docker import APIClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from tests.parts.missing import missing
from tests.parts.processes import stop_process
from tests.parts.waiting import wait_for

IMAGE = "drover/busybox:1"
ALWAYS = ("id", "flock")  # what busybox does not have, or not as it is needed
AGENT_UID = 10001


def docker_binary(name: str) -> str:
    return shutil.which(name) or missing(name, "apt install docker.io")


def busybox_binary() -> Path:
    """Linked statically, or it would not run in an empty image."""
    found = shutil.which("busybox")
    if found:
        linked = subprocess.run(["ldd", found], capture_output=True, text=True, check=False)
        if linked.returncode != 0:
            return Path(found)
    return missing("a static busybox", "apt install busybox-static")


class DockerEngine:
    """Start it, stop it, kill it, freeze it; its address and its images stay."""

    def __init__(self) -> None:
        self._dockerd = docker_binary("dockerd")
        docker_binary("containerd")
        if os.getuid() != 0:
            missing("a Docker engine of our own", "run the tests as root")
        # Short: sockets of containerd lie far below it.
        self.directory = Path(tempfile.mkdtemp(prefix="dd-"))
        self.url = f"unix://{self.directory}/d.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def create(self) -> "DockerEngine":
        self.start()
        self.import_image(IMAGE)
        return self

    def start(self) -> "DockerEngine":
        for left in self.directory.glob("**/*.pid"):
            left.unlink()  # after a kill the engine would take itself for running
        options = ("--iptables=false", "--ip6tables=false", "--bridge=none", "--ip-forward=false")
        where = self.directory
        argv = [self._dockerd, "--data-root", str(where / "root"), "--exec-root", str(where / "x")]
        argv += ["--pidfile", str(where / "d.pid"), "-H", self.url, *options]
        with (where / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        wait_for(self.answers, 30, "dockerd does not answer")
        return self

    def answers(self) -> bool:
        assert self.process is not None and self.process.poll() is None, self.log()[-2000:]
        try:
            return bool(self.client().ping())
        except (DockerException, RequestException):
            return False

    def client(self) -> APIClient:
        return APIClient(self.url, version="auto", timeout=30)

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def stop(self) -> None:
        """As its service manager does it: it ends its containers first."""
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            stop_process(self.process, 30)

    def kill(self) -> None:
        """It and its containerd, which a crash may leave alone; the containers live on."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def remove(self) -> None:
        with contextlib.suppress(DockerException, RequestException):
            for container in self.client().containers(all=True):
                self.client().remove_container(container, force=True, v=True)
        self.stop()
        for mount in _mounts_below(self.directory):
            subprocess.run(["umount", "-l", mount], capture_output=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def import_image(self, image: str, *programs: str) -> None:
        """Busybox, and programs of this machine with the libraries they need."""
        name, _, tag = image.partition(":")
        answer = self.client().import_image_from_data(_root_tree(programs), name, tag)
        assert "error" not in str(answer), answer


def _root_tree(programs: Sequence[str]) -> bytes:
    busybox = busybox_binary()
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("bin", "etc", "tmp", "usr/bin", "proc", "dev", "sys"):
            _add(tar, name, kind=tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755)
        users = f"root:x:0:0::/:/bin/sh\nagent:x:{AGENT_UID}:{AGENT_UID}::/tmp:/bin/sh\n"
        _add(tar, "etc/passwd", users.encode(), mode=0o644)
        _add(tar, "bin/busybox", busybox.read_bytes())
        # Whoever runs it would be root, if that could still be gained. Busybox would not do: it
        # gives such rights up by itself.
        _add(tar, "bin/rootly", Path("/usr/bin/id").read_bytes(), mode=0o4755)
        for applet in applets.split():
            if applet != "busybox":
                _add(tar, f"bin/{applet}", kind=tarfile.SYMTYPE, link="busybox")
        for path in {file for program in (*ALWAYS, *programs) for file in _with_libraries(program)}:
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


def _with_libraries(program: str) -> list[str]:
    path = shutil.which(program) or missing(program, f"apt install {program}")
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    words = (word for line in listed.splitlines() for word in line.split())
    return [path, *(word for word in words if word.startswith("/"))]


def _mounts_below(directory: Path) -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    below = [line.split()[1] for line in lines if line.split()[1].startswith(f"{directory}/")]
    return sorted(below, reverse=True)
