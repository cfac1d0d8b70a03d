"""The guard, a small parent process of a worker: kills all descendants of a dead or silent worker.

Run as a script, `python -IS guard.py [--silence SECONDS] -- CMD ARGS...`; standard library only.
With `--parent PID` it kills the command when the process that started the guard ends."""

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
PIPE_VARIABLE = "DROVER_GUARD_FD"
EXIT_USAGE = 64
EXIT_SILENCE = 75
DEFAULT_SILENCE_SECONDS = 25.0
KILL_SECONDS = 10.0
ID_LENGTH = 12  # of a container id, as Docker shows it
REMOVE_CONTAINERS = "agents_app.runners.containers.remove"
# The checkout, where the package of REMOVE_CONTAINERS is found.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
GUARD = os.path.abspath(__file__)  # noqa: PTH100
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def become_subreaper() -> bool:
    """Orphaned descendants become children of this process; False where that is not supported."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


class GuardPipe:
    """The pipe from a worker to its guard; without a guard it does nothing."""

    def __init__(self, fd: int | None) -> None:
        self.fd = fd

    def lease_renewed(self) -> None:
        """The lease was renewed; after too long without this call the guard kills the worker."""
        self._write("")

    def set_containers(self, containers: "Iterable[str]") -> None:
        """The containers of all runs. They are no children of the worker, but end with it."""
        self._write(" ".join(["="] + [container[:ID_LENGTH] for container in containers]))

    def _write(self, line: str) -> None:
        if self.fd is not None:
            with contextlib.suppress(OSError):  # the guard is dead, or the pipe is full
                os.write(self.fd, f"{line}\n".encode())


def open_guard_pipe() -> GuardPipe:
    """The pipe from the environment; child processes do not inherit it."""
    number = os.environ.pop(PIPE_VARIABLE, "")
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
    """Starts one command and waits for its exit, for signals, and for its lease renewals."""

    def __init__(self, command: list[str], silence_seconds: float) -> None:
        self.command = command
        self.silence_seconds = silence_seconds
        self.exit_code: int | None = None
        self.silent_at = float("inf")
        self.partial_line = b""
        self.containers: list[str] = []
        self.pipe, self.pipe_write_end = os.pipe()
        self.signals, self.signals_end = os.pipe()
        os.set_blocking(self.signals_end, False)
        self.poll = select.poll()
        self.poll.register(self.pipe, select.POLLIN)
        self.poll.register(self.signals, select.POLLIN)

    def run(self) -> int:
        become_subreaper()
        self._start()
        while self.exit_code is None:
            self._wait()
            if self.exit_code is None and time.monotonic() >= self.silent_at:
                self._kill(f"no renewal for {self.silence_seconds:g} s")
                self._remove_containers()
                return EXIT_SILENCE
        if self._reap():
            self._kill(f"{self.command[0]} ended with {self.exit_code}")
        return self.exit_code

    def _start(self) -> None:
        watched = {*FORWARDED_SIGNALS, signal.SIGQUIT, signal.SIGCHLD}
        signal.pthread_sigmask(
            signal.SIG_BLOCK, watched
        )  # no signal may be lost between fork and exec
        guard_pid = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._become_command(guard_pid, watched)
        os.close(self.pipe_write_end)
        for number in watched:
            if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:
                signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.signals_end, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)

    def _become_command(self, guard_pid: int, watched: set[signal.Signals]) -> "NoReturn":
        try:
            # Its own group, or Ctrl-C arrives twice: from the terminal and from the guard.
            os.setpgid(0, 0)
            _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != guard_pid:
                os._exit(128 + signal.SIGTERM)
            self._pass_pipe_on()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
            os.execvp(self.command[0], self.command)  # noqa: S606  # argv as given, without a shell
        except OSError as error:
            _say(f"cannot start {self.command[0]}: {error.strerror}")
            os._exit(127 if isinstance(error, FileNotFoundError) else 126)

    def _pass_pipe_on(self) -> None:
        os.set_inheritable(self.pipe_write_end, True)
        os.environ[PIPE_VARIABLE] = str(self.pipe_write_end)

    def _wait(self) -> None:
        left = self.silent_at - time.monotonic()
        timeout = None if left == float("inf") else max(0, int(left * 1000) + 1)
        for fd, _ in self.poll.poll(timeout):
            data = os.read(fd, 4096)
            if fd == self.signals:
                for number in set(data):
                    self._on_signal(number)
            elif data:
                self._read_lines(data)
            else:
                self.poll.unregister(fd)  # closed by the command: the time limit stays

    def _read_lines(self, data: bytes) -> None:
        *lines, self.partial_line = (self.partial_line + data).split(b"\n")
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
            self._remove_containers()
        elif self.exit_code is None:
            self._forward_term()

    def _forward_term(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def _reap(self) -> bool:
        """Reap dead children; False when there is no child."""
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
        """Send SIGKILL to every child until there is none: orphans become children, too."""
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

    def _remove_containers(self) -> None:
        """Remove the containers in a separate process: the Docker SDK is larger than the guard.

        Not done for a worker that died: the next worker adopts its containers. The runs of a
        silent worker are lost when its lease ends, so no worker would adopt them."""
        if not self.containers:
            return
        os.chdir(ROOT)
        argv = [sys.executable, "-m", REMOVE_CONTAINERS, *self.containers]
        pid = os.posix_spawn(sys.executable, argv, os.environ)
        give_up_at = time.monotonic() + KILL_SECONDS
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > give_up_at:
                self._say(f"containers may still run: {' '.join(self.containers)}")
                os.kill(pid, signal.SIGKILL)
                give_up_at = float("inf")
            time.sleep(0.01)

    def _say(self, message: str) -> None:
        _say(message)


class ParentBoundGuard(Guard):
    """The guard of a shell command: kills it when the parent ends. Prints nothing, because the
    output is that of the command."""

    def __init__(self, command: list[str], parent: int) -> None:
        super().__init__(command, float("inf"))
        _prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            sys.exit(128 + signal.SIGQUIT)  # the parent died before the call of prctl

    def _pass_pipe_on(self) -> None:
        pass

    def _forward_term(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGTERM)

    def _say(self, message: str) -> None:
        pass


def kill_with_group(pid: int) -> None:
    """Only for children that are not reaped: their pids cannot be reused.

    Kills the whole group at once, or a fork bomb starts processes faster. The group is killed
    only if the child leads it or its session began below this process."""
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
    data = os.read(fd, 4096)  # one page is enough: the caller reads again
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
            _say(f"--silence needs a number of seconds, not {arguments[1]!r}")
            return EXIT_USAGE
        arguments = arguments[2:]
    if arguments[:1] == ["--parent"] and arguments[2:3] == ["--"] and len(arguments) > 3:
        return ParentBoundGuard(arguments[3:], int(arguments[1])).run()
    if arguments[:1] != ["--"] or len(arguments) < 2:
        _say("usage: guard.py [--silence SECONDS] -- CMD ARGS...")
        return EXIT_USAGE
    return Guard(arguments[1:], silence).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
