"""Runs of real programs: input, environment, endings and failed starts."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from agents_app.runners import RUNNERS
from agents_app.runners.base import Outcome, verdict
from tests.agents_app.runners.programs import Program, Shell
from tests.parts.processes import environment_of, is_gone

pytestmark = pytest.mark.usefixtures("nothing_leaks")


def test_the_registry_knows_the_process_runner(tmp_path):
    program = Program(tmp_path, "/bin/true", runner=RUNNERS["process"]).run()
    assert program.outcome == Outcome("exited", 0, "", program.control.pid)


@pytest.mark.parametrize("code", [0, 1, 42, 124, 255])
def test_a_process_returns_its_exit_code(shell: Shell, code):
    assert shell(f"exit {code}").run().outcome.exit_code == code


def test_a_process_killed_by_a_signal_has_a_negative_exit_code(shell: Shell):
    outcome = shell("kill -SEGV $$").run().outcome
    assert (outcome.kind, outcome.exit_code) == ("exited", -signal.SIGSEGV)


def test_a_kill_from_outside_is_not_called_a_stop(shell: Shell):
    program = shell("sleep 60").start()
    os.kill(program.pid(), signal.SIGKILL)
    outcome = program.join().outcome
    assert (outcome.kind, outcome.exit_code) == ("exited", -9)


def test_the_control_has_pid_and_start_time_while_the_program_runs(shell: Shell):
    before = time.time()
    program = shell("echo $$ > pid; sleep 60").start()
    assert program.noted_pid() == program.pid()
    assert before <= (program.control.started_at or 0) <= time.time()
    program.control.stop("done", grace_seconds=0)
    program.join()


def test_the_program_gets_only_the_environment_of_its_spec(shell: Shell, monkeypatch):
    monkeypatch.setenv("DJANGO_SECRET_KEY", "canary")
    program = shell("sleep 60").start()
    pid = program.pid()
    assert environment_of(pid) == dict(program.spec.env)
    program.control.stop("done", grace_seconds=0)
    program.join()


def test_the_program_gets_no_descriptor_but_the_three(shell: Shell):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    program = shell("ls /proc/self/fd").run()
    # ls itself opens the directory as the next free one
    assert program.sink.text(1).split() == [b"0", b"1", b"2", b"3"]
    os.close(reader)
    os.close(writer)


def test_the_program_leads_a_session_in_its_directory(shell: Shell):
    program = shell("sleep 60").start()
    pid = program.pid()
    assert os.getsid(pid) == os.getpgid(pid) == pid
    assert Path(f"/proc/{pid}/cwd").readlink() == program.cwd
    program.control.stop("done", grace_seconds=0)
    program.join()


def test_the_prompt_is_on_stdin(shell: Shell):
    assert shell("cat").run().sink.text() == b"hello"


@pytest.mark.fault("F38")
def test_an_unread_prompt_of_50_mb_does_not_block(shell: Shell):
    program = shell("exit 0")
    with program.spec.prompt_file.open("wb") as prompt:
        prompt.truncate(50_000_000)
    assert program.run().outcome.exit_code == 0
    assert program.took_seconds < 2


@pytest.mark.fault("F38")
def test_a_prompt_of_50_mb_arrives_whole(shell: Shell):
    program = shell("wc -c")
    with program.spec.prompt_file.open("wb") as prompt:
        prompt.truncate(50_000_000)
    assert program.run().sink.text().strip() == b"50000000"


def test_a_bare_name_is_looked_up_in_the_runs_own_path(tmp_path):
    program = Program(tmp_path, "only-here")
    tool = program.cwd / "only-here"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    assert program.run().outcome.kind == "spawn_failed"
    program.env["PATH"] = f"{program.cwd}:/usr/bin:/bin"
    assert program.run().sink.text() == b"found\n"


# Not starting


@pytest.mark.parametrize(
    ("argv", "errno_name"),
    [
        (("no-such-program",), "ENOENT"),
        (("/no/such/program",), "ENOENT"),
        (("/etc/passwd",), "EACCES"),
        (("/",), "EACCES"),
        (("/bin/true", "a\0b"), "EINVAL"),
        (("/bin/true", "x" * 3_000_000), "E2BIG"),
        ((), "EINVAL"),
    ],
)
@pytest.mark.fault("F44")
def test_a_program_that_cannot_start_is_an_outcome(tmp_path, argv, errno_name):
    program = Program(tmp_path, *argv).run()
    assert program.outcome.kind == "spawn_failed"
    assert program.outcome.error.startswith(f"{errno_name}: ")
    assert program.outcome.pid is None
    assert verdict(program.outcome).error.startswith(f"spawn_failed: {errno_name}: ")


def test_a_script_without_its_first_line_is_an_outcome(tmp_path):
    script = tmp_path / "script"
    script.write_text("echo hi\n")
    script.chmod(0o755)
    outcome = Program(tmp_path, str(script)).run().outcome
    assert outcome.error.startswith("ENOEXEC: ")


@pytest.mark.fault("F44")
def test_a_working_directory_that_is_gone_is_named(shell: Shell, tmp_path):
    program = shell("exit 0")
    program.spec.prompt_file.rename(tmp_path / "prompt")
    program.cwd.rmdir()
    object.__setattr__(program.spec, "prompt_file", tmp_path / "prompt")
    outcome = program.run().outcome
    assert outcome.kind == "spawn_failed"
    assert f"working directory {program.cwd}" in outcome.error


def test_a_prompt_file_that_is_gone_is_named(shell: Shell):
    program = shell("exit 0")
    program.spec.prompt_file.unlink()
    outcome = program.run().outcome
    assert outcome.kind == "spawn_failed"
    assert "prompt file" in outcome.error


# Many, and odd places


def test_200_runs_leave_no_descriptor_and_no_zombie(tmp_path):
    def fifty() -> None:
        for _ in range(50):
            assert Program(tmp_path, "/bin/true").run().outcome.exit_code == 0

    threads = [threading.Thread(target=fifty) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_sink_that_raises_takes_the_program_down_with_it(shell: Shell, monkeypatch):
    program = shell("echo hi; echo $$ > pid; exec sleep 60")
    monkeypatch.setattr(program.sink, "feed", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        program.run()
    assert is_gone(program.pid())


def test_a_process_is_supervised_without_pidfd(shell: Shell, monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    program = shell("echo out; sleep 0.2; exit 5").run()
    assert program.outcome.exit_code == 5
    assert program.sink.text() == b"out\n"
    assert shell("sleep 60", timeout=0.2).run().outcome.kind == "timed_out"
