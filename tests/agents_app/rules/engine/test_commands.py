"""Shell commands of rules as real processes: directory, output, timeout and cleanup."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from agents_app.rules.engine.commands import OutputTail, run_command
from agents_app.rules.engine.decide import RuleAction
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language.rule import Every, Rule, ShellCommand
from agents_app.runners.base import RunControl
from agents_app.secrets import credentials
from agents_app.secrets.types import parse_name
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.rules.engine.rules_clock import action_of
from tests.parts.waiting import wait_for

SECRET = "s3cr3t-s3cr3t-s3cr3t"


def action(command: str, rule_id: int = 1) -> RuleAction:
    return action_of(Rule("nightly", Every(60), (), ShellCommand(command)), rule_id)


def run(
    command: str, tmp_path: Path, seconds: float = 30, grace: float = 5, tenant_id: int = 1
) -> ActionOutcome:
    return run_command(action(command), tenant_id, tmp_path, RunControl(), seconds, grace)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.django_db
def test_a_command_runs_in_the_project_directory(tmp_path: Path):
    assert run("pwd", tmp_path) == ActionOutcome("exit code 0", exit_code=0, tail=str(tmp_path))


@pytest.mark.django_db
def test_a_command_inherits_no_files_and_variables_of_its_guard(tmp_path: Path):
    open_files = "for n in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$n ] || echo open $n; done"
    outcome = run(f"{open_files}; env | grep GUARD; true", tmp_path)
    assert outcome == ActionOutcome("exit code 0", exit_code=0, tail="")


@pytest.mark.django_db
def test_the_last_twenty_lines_and_the_exit_code_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    outcome = run("for i in $(seq 1 49); do echo $i; done; echo 50 >&2; exit 3", tmp_path)
    assert (outcome.problem, outcome.exit_code) == ("exit code 3", 3)
    assert outcome.tail.split() == [str(number) for number in range(31, 51)]
    (logged,) = [record.msg for record in caplog.records if "exit_code" in record.msg]
    assert logged["exit_code"] == 3
    assert logged["tail"] == outcome.tail


@pytest.mark.django_db
def test_of_a_long_output_the_end_is_kept(tmp_path: Path):
    outcome = run("yes 0123456789 2>/dev/null | head -c 20000000; echo the end", tmp_path)
    assert outcome.tail.endswith("the end")
    assert len(outcome.tail.split("\n")) == 20


def _tail(*pieces: bytes) -> list[str]:
    tail = OutputTail()
    for piece in pieces:
        tail.feed(1, piece, 0.0)
    return tail.text.split("\n")


def test_the_beginning_of_each_long_line_is_kept():
    lines = [b"%d " % number + b"x" * 5000 for number in range(30)]
    whole = b"\n".join(lines)
    expected = [f"{number} ".ljust(1000, "x") for number in range(10, 30)]
    assert _tail(whole) == expected
    assert _tail(*(whole[at : at + 777] for at in range(0, len(whole), 777))) == expected


def test_carriage_returns_end_lines_and_blank_lines_at_the_end_are_removed():
    assert _tail(b"one\r", b"\ntwo\r\nthree\rfo", b"ur\n\n", b"\n" * 50) == [
        *("one", "two", "three", "four")
    ]
    assert _tail(b"\xc3\xbc" * 5000) == ["\xfc" * 1000]


@pytest.mark.django_db
def test_a_command_that_times_out_is_terminated_with_all_its_processes(tmp_path: Path):
    """SIGTERM reaches the whole group; a process that ignores it is killed after the grace."""
    script = (
        "(trap 'echo child told; exit' TERM; echo $$ > child; while :; do sleep 0.05; done) & "
        "trap 'echo told' TERM; while :; do sleep 0.05; done"
    )
    outcome = run(script, tmp_path, seconds=1, grace=0.7)
    assert outcome.problem == "timed out after 1 s"
    assert {"told", "child told"} <= set(outcome.tail.split("\n"))


@pytest.mark.django_db
def test_background_processes_of_a_command_end_with_it(tmp_path: Path):
    outcome = run("setsid sleep 1000 & echo $!; sleep 0.2", tmp_path)
    assert outcome.exit_code == 0
    pid = int(outcome.tail)
    wait_for(lambda: not alive(pid))


@pytest.mark.django_db
def test_a_command_does_not_see_the_secrets_of_drover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DROVER_SECRET_KEY", "hunter2hunter2")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter2@h/d")
    outcome = run("env; cat", tmp_path)
    assert "hunter2" not in outcome.tail
    assert "DROVER_RULE=nightly" in outcome.tail


def test_secrets_are_redacted_from_the_output_of_a_command(fleet: Fleet, tmp_path: Path):
    name = parse_name("api_key")
    credentials.set_credential(fleet.tenant, name, {"value": SECRET}, "ann", NOON)
    outcome = run(f"echo {SECRET}", tmp_path, tenant_id=fleet.tenant.pk)
    assert outcome.tail == "[redacted api_key]"


@pytest.mark.django_db
def test_a_command_that_is_stopped_with_beat_has_not_failed(tmp_path: Path):
    control = RunControl()
    threading.Timer(
        0.5, lambda: control.stop("beat was stopped while the command was running")
    ).start()
    outcome = run_command(action("sleep 60"), 1, tmp_path, control)
    assert (outcome.stopped, outcome.problem) == (
        "beat was stopped while the command was running",
        "",
    )


def test_a_command_dies_with_the_process_that_started_it(tmp_path: Path):
    """Also its background processes, although the dying process sends no signal."""
    guard = Path(__file__).parents[4] / "agents_app" / "runners" / "guard.py"
    script = f"sh -c 'sleep 1000 & echo $! > {tmp_path}/pid; sleep 1000'"
    code = (
        "import subprocess, sys, os, time; "
        f"subprocess.Popen([sys.executable, '-IS', {str(guard)!r}, '--parent', str(os.getpid()), "
        f"'--', 'sh', '-c', {script!r}], start_new_session=True); time.sleep(1000)"
    )
    parent = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
    try:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        sleeper = int((tmp_path / "pid").read_text())
        assert alive(sleeper)
    finally:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
    wait_for(lambda: not alive(sleeper))
