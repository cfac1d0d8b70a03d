"""A tiny parent for a worker: when the worker is dead or silent, everything below it dies too.

Run as a script, `python -IS guard.py [--silence SECONDS] -- CMD ARGS...`; standard library only.
With `--parent PID` it is the other way round: everything dies with the process that started it."""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing would cost a fifth of this process's memory
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINE_VARIABLE = "DROVER_GUARD_FD"
EXIT_USAGE = 64
EXIT_SILENCE = 75
DEFAULT_SILENCE_SECONDS = 25.0
KILL_SECONDS = 10.0
ID_LENGTH = 12  # of a container, as people see it
END_CONTAINERS = "agents_app.runners.end_containers"
# The checkout: the package of END_CONTAINERS is found from here.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
GUARD = os.path.abspath(__file__)  # noqa: PTH100
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def become_subreaper() -> bool:
    """Orphans below this process become its children; False where the system has no such thing."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


class GuardPipe:
    """What the guarded process tells its guard; without one it leads nowhere."""

    def __init__(self, fd: int | None) -> None:
        self.fd = fd

    def renewed(self) -> None:
        """The lease: what is silent for too long is dead, or cut off."""
        self._say("")

    def holds(self, containers: "Iterable[str]") -> None:
        """All of them, each time: they are no children of ours, and must die all the same."""
        self._say(" ".join(["="] + [container[:ID_LENGTH] for container in containers]))

    def _say(self, line: str) -> None:
        if self.fd is not None:
            with contextlib.suppress(OSError):  # the guard is gone, or slow and the pipe is full
                os.write(self.fd, f"{line}\n".encode())


def open_line() -> GuardPipe:
    """It takes the descriptor out of reach of everything the process starts."""
    number = os.environ.pop(LINE_VARIABLE, "")
    if not number.isdecimal():
        return GuardPipe(None)
    fd = int(number)
    os.set_inheritable(fd, False)
    os.set_blocking(fd, False)
    return GuardPipe(fd)


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL(None)
        return bool(libc.prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class Guard:
    """Starts one command and watches its exit, the signals meant for it, and its line."""

    def __init__(self, command: list[str], silence_seconds: float) -> None:
        self.command = command
        self.silence_seconds = silence_seconds
        self.exit_code: int | None = None
        self.silent_at = float("inf")
        self.heard = b""
        self.containers: list[str] = []
        self.line, self.line_end = os.pipe()
        self.signals, self.signals_end = os.pipe()
        os.set_blocking(self.signals_end, False)
        self.poll = select.poll()
        self.poll.register(self.line, select.POLLIN)
        self.poll.register(self.signals, select.POLLIN)

    def run(self) -> int:
        become_subreaper()
        self._start()
        while self.exit_code is None:
            self._wait()
            if self.exit_code is None and time.monotonic() >= self.silent_at:
                self._kill(f"no renewal for {self.silence_seconds:g} s")
                self._end_containers()
                return EXIT_SILENCE
        if self._reap():
            self._kill(f"{self.command[0]} ended with {self.exit_code}")
        return self.exit_code

    def _start(self) -> None:
        watched = {*PASSED_ON, signal.SIGQUIT, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, watched)  # none may fall between fork and exec
        guard_pid = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._become_command(guard_pid, watched)
        os.close(self.line_end)
        for number in watched:
            if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:
                signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.signals_end, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)

    def _become_command(self, guard_pid: int, watched: set[signal.Signals]) -> "NoReturn":
        try:
            # A group of its own, or Ctrl-C reaches it twice: from the terminal and from the guard.
            os.setpgid(0, 0)
            _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != guard_pid:
                os._exit(128 + signal.SIGTERM)
            self._hand_over_line()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
            os.execvp(self.command[0], self.command)  # noqa: S606  # argv as given, no shell wanted
        except OSError as error:
            _say(f"cannot start {self.command[0]}: {error.strerror}")
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)

    def _hand_over_line(self) -> None:
        os.set_inheritable(self.line_end, True)
        os.environ[LINE_VARIABLE] = str(self.line_end)

    def _wait(self) -> None:
        left = self.silent_at - time.monotonic()
        timeout = None if left == float("inf") else max(0, int(left * 1000) + 1)
        for fd, _ in self.poll.poll(timeout):
            data = os.read(fd, 4096)
            if fd == self.signals:
                for number in set(data):
                    self._on_signal(number)
            elif data:
                self._hear(data)
            else:
                self.poll.unregister(fd)  # closed by the command: the clock goes on

    def _hear(self, data: bytes) -> None:
        *lines, self.heard = (self.heard + data).split(b"\n")
        for line in lines:
            if line.startswith(b"="):
                words = line[1:].decode("ascii", "ignore").split()
                self.containers = [word for word in words if word.isalnum()]
            else:
                self.silent_at = time.monotonic() + self.silence_seconds

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGQUIT:
            self._kill("SIGQUIT")
            self._end_containers()
        elif self.exit_code is None:
            self._pass_on_term()

    def _pass_on_term(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def _reap(self) -> bool:
        """Reaps whatever is dead; False when no child is left at all."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.pid:
                    code = os.waitstatus_to_exitcode(status)
                    self.exit_code = code if code >= 0 else 128 - code
        return False

    def _kill(self, why: str) -> None:
        """KILL to every child until none is left: the orphans of the dead become our children."""
        self._say(f"{why}: killing everything below")
        give_up_at = time.monotonic() + KILL_SECONDS
        while self._reap():
            if time.monotonic() > give_up_at:
                self._say(f"still alive after SIGKILL: {children_of_this()}")
                break
            for pid in children_of_this() or ([self.pid] if self.exit_code is None else []):
                kill_with_group(pid)
            time.sleep(0.002)
        if self.exit_code is None:
            self.exit_code = 128 + signal.SIGKILL

    def _end_containers(self) -> None:
        """By a process of its own: what speaks to their engine is larger than all of this.

        Of a worker that just died they live on, and the next one adopts them; one that is cut off
        has no next one that could, and its runs are lost to all others when the lease ends."""
        if not self.containers:
            return
        os.chdir(ROOT)
        argv = [sys.executable, "-m", END_CONTAINERS, *self.containers]
        pid = os.posix_spawn(sys.executable, argv, os.environ)
        give_up_at = time.monotonic() + KILL_SECONDS
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > give_up_at:
                self._say(f"containers may live on: {' '.join(self.containers)}")
                os.kill(pid, signal.SIGKILL)
                give_up_at = float("inf")
            time.sleep(0.01)

    def _say(self, message: str) -> None:
        _say(message)


class Companion(Guard):
    """Of a shell command: it ends with its parent, and is silent, because its output is read."""

    def __init__(self, command: list[str], parent: int) -> None:
        super().__init__(command, float("inf"))
        _prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            sys.exit(128 + signal.SIGQUIT)  # it died before the line above

    def _hand_over_line(self) -> None:
        pass

    def _pass_on_term(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGTERM)

    def _say(self, message: str) -> None:
        pass


def kill_with_group(pid: int) -> None:
    """Only for children not reaped yet: such a number can be nobody else's.

    The whole group at once, or a fork bomb outruns us; a group of a session that began below
    us, or that the child leads, holds nobody else's processes."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        group = os.getpgid(pid)
        if group == pid or os.getsid(pid) != os.getsid(0):
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def children_of_this() -> list[int]:
    try:
        fd = os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY)
    except OSError:
        return []
    data = os.read(fd, 4096)  # a page of them will do: the caller comes again
    os.close(fd)
    return [int(pid) for pid in data.rpartition(b" ")[0].split()]


def _say(message: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"drover guard: {message}\n".encode(errors="replace"))


def main(arguments: list[str]) -> int:
    silence = DEFAULT_SILENCE_SECONDS
    if arguments[:1] == ["--silence"] and len(arguments) > 1:
        try:
            silence = float(arguments[1])
        except ValueError:
            _say(f"--silence wants seconds, not {arguments[1]!r}")
            return EXIT_USAGE
        arguments = arguments[2:]
    if arguments[:1] == ["--parent"] and arguments[2:3] == ["--"] and len(arguments) > 3:
        return Companion(arguments[3:], int(arguments[1])).run()
    if arguments[:1] != ["--"] or len(arguments) < 2:
        _say("usage: guard.py [--silence SECONDS] -- CMD ARGS...")
        return EXIT_USAGE
    return Guard(arguments[1:], silence).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
