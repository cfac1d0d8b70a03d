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
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agents_app.runners.base import CannotSpawn, RunSpec
from agents_app.runners.child import REAP_SECONDS, STDERR, STDOUT, ChildProcess, Identity, new_gate
from agents_app.runners.gate import Gate
from agents_app.runners.promises import this_kernel
from agents_app.runners.sandbox import refuse_missing_promises

SHIM = Path(__file__).with_name("host_shim.py")
ANSWER_SECONDS = 15.0
KILL_SECONDS = 10.0
SUDOERS_ADVICE = "allow it in sudoers: `{worker} ALL=({user}) NOPASSWD: {shim}`"


class ShimChild(ChildProcess):
    """The leader is sudo, a process of root: signals are requested from the shim behind it."""

    __slots__ = ("_handshake", "_kill_argv", "_pipe")

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        streams: dict[int, int],
        kill_argv: list[str],
        handshake: Callable[[], None],
    ) -> None:
        super().__init__(popen, streams)
        assert popen.stdin is not None
        self._pipe = popen.stdin
        self._kill_argv = kill_argv
        self._handshake = handshake

    def open_gate(self) -> None:
        """Start sudo, send the request to the shim and await its answer."""
        super().open_gate()
        self._handshake()

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
    """sudo waits at a gate, so that all processes of the run begin under its limits."""
    if spec.sandbox is not None:
        refuse_missing_promises(spec.sandbox, this_kernel())
    gate = new_gate(_sudo(identity), os.environ)
    try:
        popen = _start_sudo(identity, gate)
    except BaseException:
        if gate is not None:
            gate.close()
        raise
    assert popen.stdout is not None
    assert popen.stderr is not None
    # Duplicates, because these objects close their descriptors when they are deleted.
    streams = {os.dup(popen.stdout.fileno()): STDOUT, os.dup(popen.stderr.fileno()): STDERR}
    kill = [*_sudo(identity), "--kill", str(spec.run_id), spec.trace_id]
    child = ShimChild(popen, streams, kill, partial(_shake_hands, popen, spec, identity))
    child.gate = gate
    return child


def _shake_hands(popen: subprocess.Popen[bytes], spec: RunSpec, identity: Identity) -> None:
    nonce = secrets.token_hex(8)
    try:
        _send(popen, _request(spec, nonce))
        _await(popen, nonce, identity)
    finally:
        for pipe in (popen.stdout, popen.stderr):
            assert pipe is not None
            pipe.close()


def _sudo(identity: Identity) -> list[str]:
    return ["sudo", "-n", "-H", "-u", identity.name, "--", str(SHIM)]


def _start_sudo(identity: Identity, gate: Gate | None) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    if shutil.which("sudo") is None:
        raise CannotSpawn(
            "sudo_missing: the worker is not root, and there is no sudo on its PATH: install it"
        )
    popen = subprocess.Popen(
        _sudo(identity) if gate is None else gate.argv,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd="/",
        bufsize=0,
        start_new_session=True,
        **({} if gate is None else gate.options),
    )
    if gate is not None:
        gate.started()
    return popen


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
        "sandbox": _sandbox(spec),
    }
    return [json.dumps(head).encode() + b"\n", *contents]


def _sandbox(spec: RunSpec) -> dict[str, object] | None:
    """What the shim restricts the program to; it knows the paths of its copies."""
    if spec.sandbox is None:
        return None
    kernel = this_kernel()
    return {
        "read": spec.sandbox.all_read,
        "write": spec.sandbox.all_write,
        "version": kernel.landlock,
        "filter_calls": kernel.filters_calls,
    }


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
