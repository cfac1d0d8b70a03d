"""The interface of runners: RunSpec, RunControl, OutputSink, Outcome, and the state of a run."""

import contextlib
import errno
import os
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agents_app.runners.stdin_messages import StdinMessages

# unavailable: the container engine does not answer and nothing was started.
# lost: the container is gone, and its exit code is unknown.
Kind = Literal["exited", "timed_out", "stopped", "spawn_failed", "unavailable", "lost"]
FinalState = Literal["succeeded", "failed", "timed_out", "stopped", "unavailable", "lost"]

EXIT_RERUN = 42
EXIT_TIMED_OUT = 124
EXIT_NAMES = {
    10: "auth failure",
    11: "permission denied",
    12: "rate limited",
    13: "invalid config",
    14: "dependency error",
    15: "unrecoverable",
    16: "user abort",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None means no limit."""

    memory_bytes: int | None = None
    pids: int | None = None
    cpus: float | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """How a program is isolated: the agent's `runtime`."""

    type: str = "process"
    run_as: str = "drover-agent"
    image: str = ""
    memory: str = "4g"
    cpus: float | None = None
    network: str = "none"
    pids_limit: int = 1024
    pull: str = "never"

    @property
    def limits(self) -> Limits:
        return Limits(memory_bytes(self.memory), self.pids_limit, self.cpus)

    @property
    def asked_limits(self) -> Limits | None:
        """The limits that differ from the defaults; only containers always have the defaults."""
        default, own = Runtime().limits, self.limits
        if own == default:
            return None
        return Limits(
            own.memory_bytes if own.memory_bytes != default.memory_bytes else None,
            own.pids if own.pids != default.pids else None,
            own.cpus,
        )


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a run on this host may reach. Files and directories in `read` may be executed, too.

    `own_read` and `own_write` are those of the run; the others are the same for many runs."""

    own_read: tuple[str, ...] = ()
    own_write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    # Refuse to start if the kernel does not keep every promise.
    required: bool = False
    # The files of Drover: no error message advises to add them.
    hidden: tuple[str, ...] = ()
    # The homes of users, where only toolchains are recommended to be added.
    homes: tuple[str, ...] = ()
    toolchains: tuple[str, ...] = ()

    @property
    def all_read(self) -> tuple[str, ...]:
        return (*self.own_read, *self.read)

    @property
    def all_write(self) -> tuple[str, ...]:
        return (*self.own_write, *self.write)


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory that a container sees, at its path on the host."""

    path: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything a runner needs to start one program."""

    run_id: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    prompt_file: Path
    timeout_seconds: float
    grace_seconds: float = 10.0
    trace_id: str = ""
    runtime: Runtime = Runtime()
    mounts: tuple[Mount, ...] = ()
    # None: the run has all rights of its user, or is in a container.
    sandbox: Sandbox | None = None
    # The run's own program, not a hook: another worker may adopt its container.
    adoptable: bool = True
    # Standard input carries messages; the prompt is only in its file.
    messages_on_stdin: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the program ended. A negative exit code is the signal that killed it.

    If `error` is set, it explains a failing exit code."""

    kind: Kind
    exit_code: int | None
    error: str = ""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    state: FinalState
    error: str = ""
    wants_rerun: bool = False


@dataclass(frozen=True, slots=True)
class StopCommand:
    reason: str
    grace_seconds: float | None = None


class CannotSpawn(Exception):
    """The program was not started; the message says why and what to do."""


class OutputSink(Protocol):
    """Receives output while the program runs. It must not raise: the run would be killed."""

    def feed(self, stream: int, data: bytes, at: float) -> None: ...

    def flush(self) -> None: ...


class RunControl:
    """The handle on a live run for other threads; it has a descriptor only while a runner runs."""

    __slots__ = (
        "_lock",
        "_wake",
        "container",
        "created_container",
        "pid",
        "refusals",
        "request",
        "sandbox",
        "started_at",
        "stdin_messages",
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake: tuple[int, int] | None = None
        self.request: StopCommand | None = None
        self.pid: int | None = None
        # Set when another worker could adopt the container: it runs and has its prompt.
        self.container = ""
        # Set when the container is created.
        self.created_container = ""
        self.started_at: float | None = None
        # How the program is confined, see agents_app.runners.promises; empty before its start.
        self.sandbox = ""
        # Paths that the sandbox refused and what to do, as far as the output names them.
        self.refusals: dict[str, str] = {}
        self.stdin_messages = StdinMessages(self._notify)

    def _notify(self) -> None:
        with self._lock:
            if self._wake is not None:
                os.write(self._wake[1], _ONE)

    def stop(self, reason: str, grace_seconds: float | None = None) -> None:
        """End the program: SIGTERM, then SIGKILL after the grace period (0: SIGKILL at once).

        The first reason is kept; a later call can only shorten the grace period."""
        with self._lock:
            first = self.request.reason if self.request else reason
            self.request = StopCommand(first, grace_seconds)
            if self._wake is not None:
                os.write(self._wake[1], _ONE)

    def open(self) -> int:
        """For runners: a descriptor that becomes readable when `stop` is called."""
        with self._lock:
            self._wake = _open_wake()
            if self.request is not None:
                os.write(self._wake[1], _ONE)
            return self._wake[0]

    def take(self) -> StopCommand | None:
        """For runners: reset the descriptor and return the stop request."""
        with self._lock:
            if self._wake is not None:
                # Must not block: the lock is held, and `stop` needs the lock.
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake[0], 4096)
            return self.request

    def close(self) -> None:
        """For runners: close the descriptor; `stop` then only stores the request."""
        self.stdin_messages.end()
        with self._lock:
            wake, self._wake = self._wake, None
            for fd in set(wake or ()):
                os.close(fd)


class Runner(Protocol):
    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome: ...


_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def memory_bytes(text: str) -> int:
    """`512m` or `4g`, as in the agent's file, where it was validated."""
    unit = text[-1].lower()
    return int(text[:-1]) * _UNITS[unit] if unit in _UNITS else int(text)


_ONE = (1).to_bytes(8, sys.byteorder)  # an eventfd takes a native 64-bit number


def _open_wake() -> tuple[int, int]:
    if hasattr(os, "eventfd"):
        fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return fd, fd
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return reader, writer


def verdict(outcome: Outcome) -> Verdict:
    """The final state of a run, and the error that people read."""
    if outcome.kind == "spawn_failed":
        return Verdict("failed", f"spawn_failed: {outcome.error}")
    if outcome.kind != "exited":
        return Verdict(outcome.kind, outcome.error)
    code = outcome.exit_code
    if code is None:
        return Verdict("failed", outcome.error or "ended without an exit code")
    if code in (0, EXIT_RERUN):
        return Verdict("succeeded", wants_rerun=code == EXIT_RERUN)
    if outcome.error:
        return Verdict("failed", outcome.error)
    if code == EXIT_TIMED_OUT:
        return Verdict("timed_out", "the program reported a timeout (exit code 124)")
    return Verdict("failed", _killed_by(-code) if code < 0 else _exit_name(code))


def _exit_name(code: int) -> str:
    if code in EXIT_NAMES:
        return f"{EXIT_NAMES[code]} (exit code {code})"
    if code > 128 and (name := signal_name(code - 128)):
        return f"exit code {code}, as shells report a command killed by {name}"
    return f"exit code {code}"


def _killed_by(number: int) -> str:
    if number == signal.SIGKILL:
        return (
            "oom_killed: killed by SIGKILL, which Drover did not send: most likely the kernel's "
            "OOM killer (see dmesg); give the machine more memory or the agent a smaller scale"
        )
    return f"killed by {signal_name(number) or f'signal {number}'}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


_SPAWN_ADVICE = {
    errno.ENOENT: "(or its #! line's program) was not found; install it or correct `command`",
    errno.EACCES: "may not be executed; chmod +x it or correct the agent's `command`",
    errno.ENOEXEC: "is not a program that this machine can run; does the script lack its #! line?",
    errno.ENOTDIR: "has a path that leads through a file; correct the agent's `command`",
    errno.E2BIG: "got too large an environment or argument list; shorten env or params",
    errno.EAGAIN: "could not start: the process limit is reached; raise it or lower the scale",
    errno.ENOMEM: "could not start: out of memory; free some or lower the scale",
    errno.EMFILE: "could not start: too many open files; raise the worker's `ulimit -n`",
    errno.ENFILE: "could not start: the machine has too many open files",
}


def spawn_error(spec: RunSpec, error: OSError | ValueError | CannotSpawn) -> str:
    """Why the program did not start: the name of the errno, the file, what to do."""
    if isinstance(error, CannotSpawn):
        return str(error)
    program = repr(spec.argv[0] if spec.argv else "")
    if not isinstance(error, OSError):
        return f"EINVAL: {program} could not start: {error}; correct `command` or `env`"
    code = error.errno or errno.EINVAL
    name = errno.errorcode.get(code, str(code))
    about = Path(os.fsdecode(error.filename)) if error.filename else None
    if about == spec.cwd:
        return f"{name}: the working directory {spec.cwd} cannot be entered; was it removed?"
    if about == spec.prompt_file:
        return f"{name}: the prompt file {spec.prompt_file} cannot be read; was it removed?"
    if code == errno.EACCES and (refused := refused_program(spec)):
        return f"{name}: the sandbox of the run refuses {refused}: {READ_ADVICE.format(refused)}"
    return f"{name}: {program} {_SPAWN_ADVICE.get(code, f'could not start: {os.strerror(code)}')}"


# --- what the sandbox refused ---------------------------------------------------------------

READ_ADVICE = "add `sandbox: {{read: [{}]}}` to the agent"
# The kernel follows as many first lines, one script's interpreter being another script.
MAX_INTERPRETERS = 5
WRITE_ADVICE = "add `sandbox: {{write: [{}]}}` to the agent"


def is_below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(f"{top.rstrip('/')}/") for top in tops)


def refused_program(spec: RunSpec) -> str:
    """The program, or the interpreter in its first line, if only the sandbox refuses it."""
    if spec.sandbox is None:
        return ""
    allowed = tuple(map(os.path.realpath, (*spec.sandbox.all_read, *spec.sandbox.all_write)))
    found = shutil.which(spec.argv[0], path=spec.env.get("PATH"))
    for _ in range(MAX_INTERPRETERS):
        if found is None:
            return ""
        if not is_below(os.path.realpath(found), allowed):
            return "" if is_below(found, spec.sandbox.hidden) else found
        found = _interpreter(found)
    return ""


def _interpreter(script: str) -> str | None:
    """None if the file is not a script. Does not wait for a writer, as opening a FIFO does."""
    try:
        file = os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(file).st_mode)
        first = os.read(file, 256).partition(b"\n")[0] if is_file else b""
    except OSError:
        return None
    finally:
        os.close(file)
    words = first[2:].split() if first.startswith(b"#!") else []
    return shutil.which(os.fsdecode(words[0])) if words else None
