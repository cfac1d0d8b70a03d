"""One child process and its descriptors: start, signal, reap."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents_app.runners.base import RunSpec
from agents_app.runners.gate import Gate, gate_file
from agents_app.runners.sandbox import start_in_sandbox
from agents_app.runners.sandbox_threads import SandboxThread

STDOUT, STDERR = 1, 2
REAP_SECONDS = 2.0


class ChildProcess:
    """Leads its own session and group; its pid is not reused before `kill_and_reap`."""

    __slots__ = ("_popen", "gate", "pid", "pidfd", "sandbox", "stdin", "streams")

    def __init__(
        self, popen: subprocess.Popen[bytes], streams: dict[int, int], stdin: int = -1
    ) -> None:
        self._popen = popen
        # Where the program waits until its limits are set; None: it has begun.
        self.gate: Gate | None = None
        # The thread that started it, which is to be closed when its strays are dead.
        self.sandbox: SandboxThread | None = None
        # The writing end, if messages are written to standard input; else -1.
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

    def open_gate(self) -> None:
        """Let a program that waits at its gate begin; OSError if it cannot be executed."""
        if self.gate is not None:
            try:
                self.gate.open()
            finally:
                self.gate.close()

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the whole group. Safe until the leader is reaped: its pid cannot be reused."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def has_exited(self) -> bool:
        """For systems without pidfd; does not reap the child."""
        if not hasattr(os, "waitid"):
            return self._popen.poll() is not None
        state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return state is not None

    def kill_and_reap(self) -> None:
        """Kill the rest of the group, reap the leader and close all descriptors; a second call
        does nothing."""
        if self.gate is not None:
            self.gate.close()
        self.signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(REAP_SECONDS)
        for fd in list(self.streams):
            self.close_stream(fd)
        self.close_stdin()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


@dataclass(frozen=True, slots=True)
class Identity:
    """The user that a program runs as."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def spawn(spec: RunSpec, identity: Identity | None = None, *, gated: bool = False) -> ChildProcess:
    """Start the program. On OSError or ValueError no process and no descriptor is left.

    A `gated` program begins with `open_gate`, where the machine can do that, else at once."""
    if not spec.argv:
        raise ValueError("the command is empty")
    theirs: list[int] = []
    ours: list[int] = []
    gate = new_gate(spec.argv, spec.env) if gated else None
    try:
        theirs.append(_stdin(spec, ours))
        for _ in (STDOUT, STDERR):
            read_end, write_end = os.pipe()
            ours.append(read_end)
            theirs.append(write_end)
        thread, popen = _start(spec, identity, partial(_popen, spec, identity, gate, *theirs))
    except BaseException:
        _close(ours)
        if gate is not None:
            gate.close()
        raise
    finally:
        _close(theirs)
    *stdin, stdout, stderr = ours
    child = ChildProcess(popen, {stdout: STDOUT, stderr: STDERR}, *stdin)
    child.gate, child.sandbox = gate, thread
    return child


def new_gate(argv: Sequence[str], env: Mapping[str, str]) -> Gate | None:
    """None if this machine cannot execute the gate."""
    return Gate(argv, env.get("PATH", os.defpath)) if gate_file() >= 0 else None


def _start(
    spec: RunSpec, identity: Identity | None, start: Callable[[], subprocess.Popen[bytes]]
) -> tuple[SandboxThread | None, subprocess.Popen[bytes]]:
    if spec.sandbox is None:
        return None, start()
    # A change from root to another user drops the capabilities, and needs them.
    as_root = identity is None and os.geteuid() == 0
    return start_in_sandbox(spec.sandbox, start, drop_capabilities=as_root)


def _stdin(spec: RunSpec, ours: list[int]) -> int:
    """Standard input: the prompt file, or a pipe if messages are written to it.

    A file, because a prompt that is never read must not block, whatever its size. The writing
    end of a pipe is appended to `ours`."""
    if spec.messages_on_stdin:
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        ours.append(write_end)
        return read_end
    # A hook may have replaced the file by a link or a pipe: neither follow nor wait.
    return os.open(spec.prompt_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _popen(
    spec: RunSpec,
    identity: Identity | None,
    gate: Gate | None,
    stdin: int,
    stdout: int,
    stderr: int,
) -> subprocess.Popen[bytes]:
    """No preexec_fn, so that Python can vfork; a bare name is looked up in the PATH of the spec."""
    popen = subprocess.Popen(
        spec.argv if gate is None else gate.argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=spec.cwd,
        env=spec.env,
        start_new_session=True,
        **({} if identity is None else _user(identity)),
        **({} if gate is None else gate.options),
    )
    if gate is not None:
        gate.started()
    return popen


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
