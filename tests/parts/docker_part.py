"""A private Docker engine for a test session, with an image built from files of this machine."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from docker import APIClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from tests.parts.image_tree import root_tree
from tests.parts.missing import missing
from tests.parts.processes import stop_process
from tests.parts.waiting import wait_for

IMAGE = "drover/busybox:1"


def docker_binary(name: str) -> str:
    return shutil.which(name) or missing(name, "apt install docker.io")


class DockerEngine:
    """Starts, stops, kills and freezes the engine; its address and its images stay."""

    def __init__(self) -> None:
        self._dockerd = docker_binary("dockerd")
        docker_binary("containerd")
        if os.getuid() != 0:
            missing("a Docker engine of our own", "run the tests as root")
        # Short, because sockets of containerd are deep below it.
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
        """Stop the engine as its service manager does; it stops its containers first."""
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            stop_process(self.process, 30)

    def kill(self) -> None:
        """Kill the engine and its containerd; the containers keep running."""
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
        """Build an image of busybox and programs of this machine with the files they need."""
        name, _, tag = image.partition(":")
        answer = self.client().import_image_from_data(root_tree(programs), name, tag)
        assert "error" not in str(answer), answer


def _mounts_below(directory: Path) -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    below = [line.split()[1] for line in lines if line.split()[1].startswith(f"{directory}/")]
    return sorted(below, reverse=True)
