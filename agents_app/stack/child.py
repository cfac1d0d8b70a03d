"""A child process that ends with its parent, and whose output is printed line by line."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable

from agents_app.stack.lines import PrintableLines
from agents_app.stack.role import Role

PrintLine = Callable[[str, str], None]

_PR_SET_PDEATHSIG = 1
# A grandchild may keep the pipe open after the child has exited.
_LAST_OUTPUT_SECONDS = 0.5


class SupervisedProcess(asyncio.SubprocessProtocol):
    """A child process. A protocol, because wait() of a stream ends only with its last pipe."""

    transport: asyncio.SubprocessTransport

    def __init__(self, role: Role, print_line: PrintLine) -> None:
        self.role = role
        # Shown if the process does not start.
        self.last_lines: deque[str] = deque(maxlen=5)
        self.muted = role.quiet_start
        self._print_line = print_line
        self._splitter = PrintableLines()
        self._exited = asyncio.Event()
        self._output_ended = asyncio.Event()

    @property
    def alive(self) -> bool:
        return not self._exited.is_set()

    def signal(self, signum: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.transport.send_signal(signum)

    async def exited(self) -> int:
        """Wait for the exit and the last lines of output; returns the exit status."""
        await self._exited.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output_ended.wait(), _LAST_OUTPUT_SECONDS)
        self.transport.close()
        status = self.transport.get_returncode()
        assert status is not None
        return status

    def pipe_data_received(self, _fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self._pass_on(self._splitter.feed(data))

    def pipe_connection_lost(self, _fd: int, _error: Exception | None) -> None:
        self._pass_on(self._splitter.finish())
        self._output_ended.set()

    def process_exited(self) -> None:
        self._exited.set()

    def _pass_on(self, lines: list[str]) -> None:
        for line in filter(str.strip, lines):
            self.last_lines.append(line)
            if not self.muted:
                self._print_line(self.role.name, line)


async def start_child(
    role: Role, print_line: PrintLine, keep_fds: tuple[int, ...] = ()
) -> SupervisedProcess:
    transport, child = await asyncio.get_running_loop().subprocess_exec(
        lambda: SupervisedProcess(role, print_line),
        *role.argv,
        env=dict(role.env),
        cwd=role.directory,
        umask=role.umask,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=keep_fds,
        # Ctrl-C goes to the whole foreground process group: only the supervisor may get it.
        start_new_session=True,
        # Safe because the supervisor has one thread while it starts children.
        preexec_fn=_die_with_parent(role.death_signal),
    )
    child.transport = transport
    return child


def watch_children_without_threads() -> None:
    """Python 3.11 would start a thread for each child; from 3.12 on this is the default."""
    if sys.version_info < (3, 12) and _has_pidfd():
        watcher = asyncio.PidfdChildWatcher()
        watcher.attach_loop(asyncio.get_running_loop())
        asyncio.get_event_loop_policy().set_child_watcher(watcher)


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _die_with_parent(signum: signal.Signals) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()
    resets = signum not in (signal.SIGKILL, signal.SIGSTOP)

    def prepare() -> None:
        # A shell starts background jobs with SIGINT and SIGQUIT ignored, and a child inherits
        # that: the signal would be lost until the child installs its handler.
        if resets:
            signal.signal(signum, signal.SIG_DFL)
        prctl(_PR_SET_PDEATHSIG, int(signum))
        if os.getppid() != parent:
            # The parent died before prctl, so the kernel will not send the signal.
            os._exit(1)

    return prepare
