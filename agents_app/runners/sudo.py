"""Starts a program as another user from a worker that is not root: sudo runs a shim as that user.

The worker may not signal the other user's processes, so the shim does, on requests over a pipe;
when the pipe closes, the shim kills the program. The program's environment and files go over the
same pipe, because command lines can be read by other users.
"""

import contextlib
import json
import os
import pwd
import secrets
import select
import signal
import subprocess
import time
from pathlib import Path

from agents_app.runners.base import CannotSpawn, RunSpec
from agents_app.runners.child import REAP_SECONDS, STDERR, STDOUT, ChildProcess, Identity

SHIM = Path(__file__).with_name("host_shim.py")
ANSWER_SECONDS = 15.0
KILL_SECONDS = 10.0
SUDOERS_ADVICE = "allow it in sudoers: `{worker} ALL=({user}) NOPASSWD: {shim}`"


class ShimChild(ChildProcess):
    """The leader is sudo, a process of root: signals are requested from the shim behind it."""

    __slots__ = ("_kill_argv", "_pipe")

    def __init__(
        self, popen: subprocess.Popen[bytes], streams: dict[int, int], kill_argv: list[str]
    ) -> None:
        super().__init__(popen, streams)
        assert popen.stdin is not None
        self._pipe = popen.stdin
        self._kill_argv = kill_argv

    def signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError, ValueError):
            if number == signal.SIGKILL:
                self._pipe.close()
            else:
                os.write(self._pipe.fileno(), b"T")

    def kill_and_reap(self) -> None:
        super().kill_and_reap()
        # The shim was killed or hangs: a second one kills the remaining processes.
        if self.exit_code is None or self.exit_code < 0:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(self._kill_argv, timeout=KILL_SECONDS, check=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(REAP_SECONDS)


def spawn_through_sudo(spec: RunSpec, identity: Identity) -> ChildProcess:
    popen = _start_sudo(identity)
    assert popen.stdout is not None
    assert popen.stderr is not None
    nonce = secrets.token_hex(8)
    try:
        _send(popen, _request(spec, nonce))
        _await(popen, nonce, identity)
    except BaseException:
        _abandon(popen)
        raise
    # Duplicates, because these objects close their descriptors when they are deleted.
    streams = {os.dup(popen.stdout.fileno()): STDOUT, os.dup(popen.stderr.fileno()): STDERR}
    popen.stdout.close()
    popen.stderr.close()
    kill = [*_sudo(identity), "--kill", str(spec.run_id), spec.trace_id]
    return ShimChild(popen, streams, kill)


def _sudo(identity: Identity) -> list[str]:
    return ["sudo", "-n", "-H", "-u", identity.name, "--", str(SHIM)]


def _start_sudo(identity: Identity) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            _sudo(identity),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise CannotSpawn(
            "sudo_missing: the worker is not root, and there is no sudo on its PATH: install it"
        ) from None


def _request(spec: RunSpec, nonce: str) -> list[bytes]:
    """One line of JSON that describes the run, then the contents of the files in its workdir."""
    files = [path for path in sorted(spec.cwd.rglob("*")) if path.is_file()]
    contents = [path.read_bytes() for path in files]
    head = {
        "nonce": nonce,
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "workdir": str(spec.cwd),
        "state": [path] if (path := spec.env.get("DROVER_STATE_DIR")) else [],
        "directories": [
            str(path.relative_to(spec.cwd)) for path in sorted(spec.cwd.rglob("*")) if path.is_dir()
        ],
        "files": [
            [str(path.relative_to(spec.cwd)), path.stat().st_mode & 0o700, len(data)]
            for path, data in zip(files, contents, strict=True)
        ],
        "stdin": str(spec.prompt_file.relative_to(spec.cwd)),
        "pids_limit": spec.runtime.pids_limit,
    }
    return [json.dumps(head).encode() + b"\n", *contents]


def _send(popen: subprocess.Popen[bytes], pieces: list[bytes]) -> None:
    """With a time limit, because the shim may not read."""
    assert popen.stdin is not None
    fd = popen.stdin.fileno()
    os.set_blocking(fd, False)
    give_up_at = time.monotonic() + ANSWER_SECONDS
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            left = give_up_at - time.monotonic()
            if left <= 0 or not select.select([], [fd], [], left)[1]:
                raise CannotSpawn(
                    "shim_silent: the shim of the other user does not read its request"
                )
            try:
                rest = rest[os.write(fd, rest[:65536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return  # the shim has ended; _await reads its error


def _await(popen: subprocess.Popen[bytes], nonce: str, identity: Identity) -> None:
    """Read the first line: `<nonce> ok` or the error of the shim; sudo's errors have no nonce."""
    assert popen.stdout is not None
    fd = popen.stdout.fileno()
    give_up_at = time.monotonic() + ANSWER_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        left = give_up_at - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise CannotSpawn("shim_silent: the shim of the other user does not answer")
        byte = os.read(fd, 1)  # one byte at a time: the rest is output of the program
        if not byte:
            raise _denied(popen, identity)
        line += byte
    answer_nonce, _, answer = line.decode(errors="replace").strip().partition(" ")
    if answer_nonce != nonce:
        raise CannotSpawn(f"shim_unknown: expected the shim, got {line[:200]!r}")
    if answer != "ok":
        raise CannotSpawn(answer)


def _denied(popen: subprocess.Popen[bytes], identity: Identity) -> CannotSpawn:
    assert popen.stderr is not None
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(REAP_SECONDS)
    os.set_blocking(popen.stderr.fileno(), False)
    error = (popen.stderr.read() or b"").decode(errors="replace").strip()[:300]
    advice = SUDOERS_ADVICE.format(worker=_user_name(os.geteuid()), user=identity.name, shim=SHIM)
    return CannotSpawn(f"sudo_denied: {error or 'sudo gave no reason'}; {advice}")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _abandon(popen: subprocess.Popen[bytes]) -> None:
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        popen.wait(REAP_SECONDS)
