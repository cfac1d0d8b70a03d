"""One child process and its descriptors: started, read, signalled, buried; no rules in here."""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Any

from agents_app.runners.base import RunSpec

STDOUT, STDERR = 1, 2
BURY_SECONDS = 2.0


class ChildProcess:
    """Leads its own session and group; its number stays ours until `bury` reaps it."""

    __slots__ = ("_popen", "pid", "pidfd", "stdin", "streams")

    def __init__(
        self, popen: subprocess.Popen[bytes], streams: dict[int, int], stdin: int = -1
    ) -> None:
        self._popen = popen
        # Ours, of one that is told things while it runs.
        self.stdin = stdin
        self.pid = popen.pid
        self.streams = streams
        self.pidfd = _open_pidfd(popen.pid)

    @property
    def exit_code(self) -> int | None:
        return self._popen.returncode

    def close_stream(self, fd: int) -> None:
        del self.streams[fd]
        os.close(fd)

    def close_stdin(self) -> None:
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def signal_group(self, number: signal.Signals) -> None:
        """Safe as long as the leader is not reaped: its number names this group and no other."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def has_exited(self) -> bool:
        """For systems without pidfd; leaves it unreaped."""
        if not hasattr(os, "waitid"):
            return self._popen.poll() is not None
        state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return state is not None

    def bury(self) -> None:
        """Kills what is left of the group, then reaps the leader and closes everything."""
        self.signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(BURY_SECONDS)
        for fd in list(self.streams):
            self.close_stream(fd)
        self.close_stdin()
        if self.pidfd >= 0:
            os.close(self.pidfd)


@dataclass(frozen=True, slots=True)
class Identity:
    """Another user that a program runs as."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def spawn(spec: RunSpec, identity: Identity | None = None) -> ChildProcess:
    """Raises OSError or ValueError and leaves nothing behind when the program cannot start."""
    if not spec.argv:
        raise ValueError("the command is empty")
    theirs: list[int] = []
    ours: list[int] = []
    try:
        theirs.append(_stdin(spec, ours))
        for _ in (STDOUT, STDERR):
            read_end, write_end = os.pipe()
            ours.append(read_end)
            theirs.append(write_end)
        popen = _popen(spec, identity, *theirs)
    except BaseException:
        _close(ours)
        raise
    finally:
        _close(theirs)
    *stdin, stdout, stderr = ours
    return ChildProcess(popen, {stdout: STDOUT, stderr: STDERR}, *stdin)


def _stdin(spec: RunSpec, ours: list[int]) -> int:
    """A file, not a pipe: a prompt that is never read must block nobody, whatever its size.

    A pipe for one that hears messages, whose end is ours as long as it runs."""
    if spec.hears:
        theirs, mine = os.pipe()
        os.set_blocking(mine, False)
        ours.append(mine)
        return theirs
    # Not through a link, nor waiting for a pipe: a hook may have put one there.
    return os.open(spec.prompt_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _popen(
    spec: RunSpec, identity: Identity | None, stdin: int, stdout: int, stderr: int
) -> subprocess.Popen[bytes]:
    """No preexec_fn, so that Python may vfork; a bare name is looked up in the spec's own PATH."""
    return subprocess.Popen(
        spec.argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=spec.cwd,
        env=spec.env,
        start_new_session=True,
        **({} if identity is None else _user(identity)),
    )


def _user(identity: Identity) -> dict[str, Any]:
    return {"user": identity.uid, "group": identity.gid, "extra_groups": []}


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
