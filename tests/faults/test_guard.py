"""The guard kills all descendants of a worker that is dead, frozen or silent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from agents_app.runners import guard
from tests.parts.processes import all_gone, is_gone
from tests.parts.waiting import wait_for

GUARD = Path(guard.__file__)
QUIET = "</dev/null >/dev/null 2>&1"
# A worker for the guard: a subreaper with the pipe of the guard, and a daemon below it.
WORKER = f"""
import os, signal, subprocess, sys, time
sys.path.append({str(GUARD.parent)!r})
from guard import become_subreaper, open_guard_pipe
become_subreaper()
line = open_guard_pipe()
renewed = line.lease_renewed
subprocess.run(["sh", "-c", "setsid sh -c 'env -i sleep 300 & echo $! > daemon; wait' {QUIET} &"])
subprocess.run(["sh", "-c", "setsid sleep 300 {QUIET} & echo $! > orphan"])
signal.signal(signal.SIGTERM, lambda *_: (open("drained", "w").write("yes"), sys.exit(3)))
while not os.path.exists("daemon") or not open("daemon").read():
    time.sleep(0.01)
open("worker.new", "w").write(str(os.getpid()))
os.rename("worker.new", "worker")
"""
WAIT = "while True: time.sleep(0.05)"
RENEW = "while True: renewed(); time.sleep(0.05)"


class Guarded:
    """A guard with its command, and the processes below it by the names of their pid files."""

    def __init__(self, where: Path, *command: str, silence: float | None = None) -> None:
        self.where = where
        options = [] if silence is None else ["--silence", str(silence)]
        argv = [sys.executable, "-IS", str(GUARD), *options, "--", *command]
        self.process = subprocess.Popen(
            argv, cwd=where, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def pid(self, name: str) -> int:
        path = self.where / name
        return int(wait_for(lambda: path.read_text().strip() if path.exists() else "", 10, name))

    def all_pids(self) -> list[int]:
        return [self.pid(name) for name in ("worker", "daemon", "orphan")]

    def wait(self, seconds: float = 10.0) -> int:
        return self.process.wait(seconds)

    def stderr_text(self) -> str:
        """The text on stderr, after the exit of the guard."""
        return self.process.communicate()[1]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[..., Guarded]]:
    made: list[Guarded] = []

    def make(*command: str, silence: float | None = None) -> Guarded:
        made.append(Guarded(tmp_path, *command, silence=silence))
        return made[-1]

    yield make
    for one in made:
        one.process.send_signal(signal.SIGQUIT)
        one.process.wait(10)
        for name in ("worker", "daemon", "orphan"):  # without their guard they may keep running
            if (tmp_path / name).exists() and not is_gone(one.pid(name)):
                os.kill(one.pid(name), signal.SIGKILL)


def worker(then: str) -> tuple[str, ...]:
    return (sys.executable, "-IS", "-c", WORKER + then)


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_guard_exits_with_the_code_of_its_command(guarded, code):
    one = guarded("sh", "-c", f"exit {code}")
    assert one.wait() == code
    assert one.stderr_text() == ""


def test_the_exit_code_after_a_signal_is_128_plus_the_signal(guarded):
    assert guarded("sh", "-c", "kill -SEGV $$").wait() == 128 + signal.SIGSEGV


def test_kill_9_of_the_worker_kills_its_daemons(guarded):
    one = guarded(*worker(WAIT))
    pids = one.all_pids()
    assert not any(map(is_gone, pids))
    killed_at = time.monotonic()
    os.kill(one.pid("worker"), signal.SIGKILL)
    assert one.wait() == 128 + signal.SIGKILL
    assert all_gone(pids)
    assert time.monotonic() - killed_at < 2
    assert one.stderr_text().count("\n") == 1


def test_a_worker_that_exits_leaves_no_process(guarded):
    one = guarded(*worker("sys.exit(5)"))
    assert one.wait() == 5
    assert all_gone(one.all_pids())


def test_a_frozen_worker_is_killed_after_the_silence(guarded):
    one = guarded(*worker(RENEW), silence=0.6)
    pids = one.all_pids()
    time.sleep(0.8)
    assert one.process.poll() is None
    os.kill(one.pid("worker"), signal.SIGSTOP)
    stopped_at = time.monotonic()
    assert one.wait() == 75
    assert 0.4 < time.monotonic() - stopped_at < 2
    assert all_gone(pids)
    assert "no renewal for 0.6 s" in one.stderr_text()


def test_a_worker_that_stops_renewing_is_killed_after_the_silence(guarded):
    one = guarded(*worker("renewed()\n" + WAIT), silence=0.3)
    assert one.wait() == 75
    assert all_gone(one.all_pids())


def test_a_worker_that_closes_its_pipe_is_killed_after_the_silence(guarded):
    closing = "renewed(); time.sleep(0.1); os.closerange(3, 100)\n"
    assert guarded(*worker(closing + WAIT), silence=0.3).wait() == 75


def test_containers_of_a_silent_worker_are_removed_and_of_a_dead_worker_kept(
    guarded, tmp_path, monkeypatch
):
    """Guard: containers are not child processes. The engine is unreachable, so the guard prints the
    containers that it could not end; the last list of the worker counts."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    holding = "line.set_containers(['aaa', 'bbb']); line.set_containers(['c' * 64]); renewed()\n"
    silent = guarded(*worker(holding + WAIT), silence=0.5)
    assert silent.wait(30) == 75
    stderr_text = silent.stderr_text()
    assert f"drover guard: {'c' * 12} may still run: " in stderr_text and "aaa" not in stderr_text
    (tmp_path / "worker").unlink()
    dead = guarded(*worker(holding + WAIT))
    os.kill(dead.pid("worker"), signal.SIGKILL)
    assert dead.wait() == 128 + signal.SIGKILL
    assert "ccc" not in dead.stderr_text()


def test_before_the_first_renewal_a_silent_worker_is_not_killed(guarded):
    assert guarded("sh", "-c", "sleep 0.6", silence=0.2).wait() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_sigterm_sigint_and_sighup_drain_the_worker(guarded, signum):
    one = guarded(*worker(WAIT))
    pids = one.all_pids()
    one.process.send_signal(signum)
    assert one.wait() == 3
    assert (one.where / "drained").exists()
    assert all_gone(pids)


def test_sigquit_kills_all_processes_immediately(guarded):
    one = guarded(*worker(WAIT))
    pids = one.all_pids()
    one.process.send_signal(signal.SIGQUIT)
    assert one.wait(2) == 128 + signal.SIGKILL
    assert not (one.where / "drained").exists()
    assert all_gone(pids)


def test_when_the_guard_is_killed_the_worker_drains(guarded):
    one = guarded(*worker(WAIT))
    pid = one.pid("worker")
    one.process.kill()
    wait_for((one.where / "drained").exists)
    wait_for(lambda: is_gone(pid))


def test_a_worker_that_ignores_term_is_not_killed_by_it(guarded):
    one = guarded("sh", "-c", "trap '' TERM; echo $$ > worker; sleep 0.5; exit 6")
    one.pid("worker")
    one.process.terminate()
    assert one.wait() == 6


def test_dead_orphans_are_reaped_while_the_guard_runs(guarded):
    one = guarded("sh", "-c", "for i in 1 2 3; do (sleep 0.1 &); done; echo $$ > worker; sleep 1")
    one.pid("worker")
    time.sleep(0.4)
    children = psutil.Process(one.process.pid).children()
    assert [child.pid for child in children] == [one.pid("worker")]


def test_only_the_worker_itself_holds_the_pipe(guarded):
    script = (
        "subprocess.run(['sh', '-c', 'ls /proc/self/fd; echo line=$DROVER_GUARD_FD'], "
        "close_fds=False)"
    )
    one = guarded(*worker(script))
    one.wait()
    lines = one.process.communicate()[0].split()
    assert lines == ["0", "1", "2", "3", "line="]  # 3 is the directory that ls reads


def test_without_a_guard_a_renewal_has_no_effect(monkeypatch):
    monkeypatch.delenv(guard.PIPE_VARIABLE, raising=False)
    guard.open_guard_pipe().lease_renewed()
    guard.open_guard_pipe().set_containers(["abc"])


def test_a_missing_command_is_reported_and_exits_with_127(guarded):
    one = guarded("no-such-command")
    assert one.wait() == 127
    assert "cannot start no-such-command: No such file" in one.stderr_text()


@pytest.mark.parametrize(
    "arguments", [[], ["--"], ["true"], ["--silence"], ["--silence", "x", "--", "true"]]
)
def test_a_usage_error_prints_the_usage(arguments, capfd):
    assert guard.main(arguments) == 64
    assert capfd.readouterr().err.startswith("drover guard: ")


def test_the_guard_needs_little_memory(guarded):
    one = guarded("sh", "-c", "echo $$ > worker; sleep 60")
    one.pid("worker")
    assert psutil.Process(one.process.pid).memory_info().rss < 16_000_000


def test_without_linux_there_is_no_subreaper_and_no_error(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert guard.become_subreaper() is False


def test_a_fork_bomb_below_a_dead_worker_is_killed(guarded):
    bomb = "def bomb():\n    for _ in range(60):\n        if os.fork() == 0: time.sleep(300)\n"
    daemon = "if os.fork() == 0:\n    os.setsid(); bomb(); time.sleep(300)\n"
    one = guarded(*worker(f"{bomb}{daemon}{WAIT}"))
    one.all_pids()
    top = psutil.Process(one.process.pid)
    wait_for(lambda: len(top.children(recursive=True)) > 60)
    below = [child.pid for child in top.children(recursive=True)]
    os.kill(one.pid("worker"), signal.SIGKILL)
    assert one.wait(5) == 137
    assert all_gone(below)
