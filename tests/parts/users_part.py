"""Other users of this host, created for a test session and removed after it; needs root."""

import os
import pickle
import pwd
import secrets
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.parts.missing import missing

T = TypeVar("T")


class Users:
    """Two users: one for a worker, and one for its agents."""

    def __init__(self) -> None:
        if os.geteuid() != 0 or not shutil.which("useradd"):
            missing("a root user with useradd", "run the tests as root")
        mark = secrets.token_hex(4)
        # Not below pytest's directories, which other users cannot enter.
        self.place = Path(tempfile.mkdtemp(prefix="drover-users-"))
        self.place.chmod(0o755)
        self.worker, self.agent = f"drw{mark}", f"dra{mark}"
        for name in (self.worker, self.agent):
            home = self.place / name
            run("useradd", "--no-log-init", "-M", "-d", str(home), "-s", "/bin/sh", name)
            home.mkdir(mode=0o700)
            os.chown(home, uid_of(name), pwd.getpwnam(name).pw_gid)
        self._sudoers = Path("/etc/sudoers.d") / f"drover-test-{mark}"

    def allow(self, shim: Path) -> None:
        """Let the worker run one program as the user of agents, with a sudoers rule."""
        if not shutil.which("sudo"):
            missing("sudo", "apt-get install sudo")
        self._sudoers.write_text(f"{self.worker} ALL=({self.agent}) NOPASSWD: {shim}\n")
        self._sudoers.chmod(0o440)

    def forbid(self) -> None:
        self._sudoers.unlink(missing_ok=True)

    def public_directory(self, owner: str = "root") -> Path:
        path = Path(tempfile.mkdtemp(dir=self.place))
        path.chmod(0o755)
        os.chown(path, uid_of(owner), -1)
        return path

    def remove(self) -> None:
        self.forbid()
        for name in (self.worker, self.agent):
            run("userdel", name)
        shutil.rmtree(self.place, ignore_errors=True)


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def uid_of(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def as_user(name: str, act: Callable[[], T]) -> T:
    """Call a function in a child process as this user and return its result."""
    user = pwd.getpwnam(name)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer: Any = None
        try:
            os.setsid()
            os.setgroups([])
            os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
            os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
            answer = (True, act())
        except BaseException:
            answer = (False, traceback.format_exc())
        finally:
            with os.fdopen(write_end, "wb") as pipe:
                pickle.dump(answer, pipe)
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        done, result = pickle.load(pipe)
    os.waitpid(pid, 0)
    assert done, result
    return result  # type: ignore[no-any-return]
