"""Start in order, readiness, restarts with growing delays, and starts that fail."""

import asyncio
import io
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from agents_app.stack import backoff, role_process
from agents_app.stack.console import Console
from agents_app.stack.role import Role
from agents_app.stack.supervisor import Callbacks, Supervisor
from tests.agents_app.stack.toys import SLEEPS, python
from tests.parts.ports import free_port


class Screen(io.StringIO):
    def lines(self) -> list[str]:
        return self.getvalue().splitlines()


def role(name: str, code: str, **fields: Any) -> Role:
    return Role(name=name, argv=python(code), env=dict(os.environ), **fields)


def supervise(*roles: Role, seconds: float = 20, stop_when: str = "") -> tuple[int, Screen]:
    """Runs until the text appears on the screen, by default until all roles are ready."""
    screen = Screen()

    async def main() -> int:
        ready = asyncio.Event()
        supervisor = Supervisor(
            roles,
            Console(screen, tuple(r.name for r in roles)),
            Callbacks(on_ready=ready.set),
        )
        running = asyncio.create_task(supervisor.run())
        async with asyncio.timeout(seconds):
            while not running.done():
                if stop_when in screen.getvalue() if stop_when else ready.is_set():
                    supervisor.request_stop()
                    break
                await asyncio.sleep(0.01)
            return await running

    return asyncio.run(main()), screen


def test_a_stage_starts_when_the_one_before_is_ready(tmp_path: Path) -> None:
    made = tmp_path / "made"
    first = role("first", f"time.sleep(0.4); open({str(made)!r}, 'w'); {SLEEPS}", ready_file=made)
    look = f"print('saw', os.path.exists({str(made)!r}), flush=True)"
    second = role("second", look, restart=False, start_stage=1)
    _, screen = supervise(first, second, stop_when="saw")
    assert "second | saw True" in screen.getvalue()


def test_roles_of_one_stage_start_at_the_same_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "ab"]
    # Each becomes ready only when the other has started: a start in sequence would never end.
    code = (
        "open({0!r}, 'w')\nwhile not os.path.exists({1!r}): time.sleep(0.01)\n"
        "print('met', flush=True)\n" + SLEEPS
    )
    names = [str(path) + ".started" for path in files]
    a = role("a", code.format(names[0], names[1]))
    b = role("b", code.format(names[1], names[0]))
    exit_code, screen = supervise(a, b, stop_when="b  | met")
    assert exit_code == 0
    assert "b  | met" in screen.getvalue()


def test_a_ready_file_of_an_earlier_start_does_not_count(tmp_path: Path) -> None:
    old = tmp_path / "ready"
    old.touch()
    one = role("one", f"time.sleep(0.3); open({str(old)!r}, 'w'); {SLEEPS}", ready_file=old)
    started = time.monotonic()
    code, _ = supervise(one)
    assert code == 0
    assert time.monotonic() - started >= 0.3


def test_a_role_that_exits_is_restarted_with_growing_delays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.05)
    dies = role("dies", "print('life', flush=True); time.sleep(0.05); sys.exit(3)")
    _, screen = supervise(dies, stop_when="next start in 0.2 s")
    said = [line for line in screen.lines() if line.startswith("up ")]
    assert said[:3] == [
        "up   | dies exited with status 3; next start in 0.05 s",
        "up   | dies exited with status 3; next start in 0.1 s",
        "up   | dies exited with status 3; next start in 0.2 s",
    ]
    assert screen.getvalue().count("life") == 3


def test_other_roles_keep_running_while_a_role_is_restarted() -> None:
    dies = role("dies", "os.kill(os.getpid(), 9)")
    lives = role("lives", "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + SLEEPS)
    code, screen = supervise(lives, dies, stop_when="next start in 1 s")
    assert "dies was killed by SIGKILL; next start in 0.5 s" in screen.getvalue()
    assert sum(line.startswith("lives | pid") for line in screen.lines()) == 1
    assert code == 0


def test_a_stop_ends_the_delay_before_a_restart() -> None:
    started = time.monotonic()
    code, _ = supervise(role("dies", "sys.exit(1)"), stop_when="next start in 2 s")
    assert code == 0
    assert time.monotonic() - started < 3.5


def test_a_port_in_use_ends_the_start_with_one_message(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        code = f"import socket; socket.create_server(('127.0.0.1', {port}))"
        gateway = role("gateway", code, ready_file=tmp_path / "never", start_stage=1)
        exit_code, screen = supervise(role("redis", SLEEPS), gateway)
    assert exit_code == 1
    said = "\n".join(line for line in screen.lines() if line.startswith("up "))
    assert said.count("was never ready") == 1
    assert "gateway exited with status 1 and was never ready. Its last lines:" in said
    assert "Address already in use" in said


def test_a_program_that_does_not_exist_is_named() -> None:
    missing = Role(name="redis", argv=("/nowhere/redis-server",), env={}, restart=False)
    code, screen = supervise(missing)
    assert code == 1
    assert "redis cannot be run (/nowhere/redis-server: No such file" in screen.getvalue()


def test_a_role_that_never_gets_ready_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role_process, "READY_WITHIN_SECONDS", 0.3)
    code, screen = supervise(role("slow", SLEEPS, ready_file=tmp_path / "never"))
    assert code == 1
    assert "slow waited 0.3 s and was never ready" in screen.getvalue()


def test_long_and_binary_lines_are_shortened_and_cleaned() -> None:
    code = (
        "out = sys.stdout.buffer\n"
        "out.write(b'x' * 3_000_000 + b'\\n')\n"
        "out.write(b'\\x00\\xff\\x1b[31mred\\x1b[0m\\x1b]52;c;aGk=\\x07 \\x9b31m\\r\\n')\n"
        "out.write('caf\\u00e9'.encode() + b' end')\n"
        "out.flush()\n"
    )
    _, screen = supervise(role("noisy", code, restart=False), stop_when=" end")
    lines = [line for line in screen.lines() if line.startswith("noisy")]
    assert len(lines) == 4
    assert lines[1] == "noisy | " + "x" * 8192 + " ... (2991808 bytes more)"
    assert lines[2] == "noisy | �\\xffred \\x9b31m"
    assert lines[3] == "noisy | café end"


def test_the_output_of_a_quiet_start_is_shown_only_if_it_fails(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"open({str(ready)!r}, 'w'); time.sleep(0.3); print('later', flush=True); {SLEEPS}"
    works = role("works", code, ready_file=ready, quiet_start=True)
    _, screen = supervise(works, stop_when="later")
    assert not [line for line in screen.lines() if line.startswith("works | pid")]
    fails = role("fails", "sys.exit(2)", ready_file=ready, quiet_start=True, restart=False)
    _, screen = supervise(fails)
    assert [line.split()[:3] for line in screen.lines()][1] == ["up", "|", "pid"]


def test_a_grandchild_that_keeps_the_pipe_open_does_not_delay_the_stop() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '3']); print('forked', flush=True)"
    started = time.monotonic()
    exit_code, _ = supervise(role("forks", code, restart=False), stop_when="forks exited")
    assert exit_code == 0
    assert time.monotonic() - started < 2.5


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.5), (2, 1), (3, 2), (6, 16), (7, 30), (10**6, 30)]
)
def test_restart_delays_double_up_to_half_a_minute(failures: int, seconds: float) -> None:
    assert backoff.restart_delay_seconds(failures) == seconds


def test_a_minute_without_a_failure_resets_the_delay() -> None:
    assert backoff.failures_after(7, alive_seconds=59) == 8
    assert backoff.failures_after(7, alive_seconds=60) == 1
