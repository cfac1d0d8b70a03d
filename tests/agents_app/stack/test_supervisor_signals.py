"""Ctrl-C once, twice, three times, and the supervisor killed: all with real processes."""

import os
import pty
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from agents_app.installation import DRAIN_SIGNAL
from tests.agents_app.stack.toys import IGNORES_TERM, SLEEPS, ToyStack, ends_slowly, python
from tests.parts.processes import all_gone
from tests.parts.waiting import wait_for


def role(name: str, code: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "argv": [*python(code), name], **fields}


def test_ctrl_c_stops_the_stages_one_after_the_other(tmp_path: Path) -> None:
    log = tmp_path / "order"
    slow = ends_slowly(0.3, log)
    roles = [
        role("redis", slow, stop_stage=3),
        role("worker", slow, stop_stage=2, stop_timeout_seconds=None),
        role("beat", slow, stop_stage=0),
        role("gateway", slow, stop_stage=1),
        role("flower", slow, stop_stage=1),
    ]
    with ToyStack(tmp_path, *roles) as stack:
        wait_for(lambda: stack.output().count("listening") == 5)
        stack.signal(signal.SIGINT)
        assert stack.exit_code() == 0
    words = log.read_text().split("\n")
    assert words[:2] == ["asked beat", "ended beat"]
    assert sorted(words[2:4]) == ["asked flower", "asked gateway"]
    assert sorted(words[4:6]) == ["ended flower", "ended gateway"]
    assert words[6:10] == ["asked worker", "ended worker", "asked redis", "ended redis"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_term_and_hangup_drain_like_ctrl_c(tmp_path: Path, signum: signal.Signals) -> None:
    with ToyStack(tmp_path, role("a", SLEEPS)) as stack:
        stack.wait_for_text("everything is ready")
        children = stack.children()
        stack.signal(signum)
        assert stack.exit_code() == 0
        assert all_gone(children)


def test_a_repeated_request_to_drain_ends_no_run(tmp_path: Path) -> None:
    """Guard: the signal of `manage.py stop` and of beat, which is sent again and again."""
    drains = role("worker", ends_slowly(1.5), stop_timeout_seconds=None)
    with ToyStack(tmp_path, drains) as stack:
        stack.wait_for_text("listening")
        for _ in range(3):
            stack.signal(DRAIN_SIGNAL)
            stack.wait_for_text("draining")
            time.sleep(0.1)
        assert stack.exit_code() == 0
    assert not (tmp_path / "interrupted").exists()


def test_the_state_is_recorded_before_the_first_stop_and_after_the_last_exit(
    tmp_path: Path,
) -> None:
    log = tmp_path / "states"
    with ToyStack(tmp_path, role("worker", ends_slowly(0.3, log))) as stack:
        stack.wait_for_text("listening")
        assert not log.exists()
        stack.signal(signal.SIGTERM)
        assert stack.exit_code() == 0
    assert log.read_text().split("\n")[:4] == [
        *("draining", "asked worker", "ended worker", "stopped")
    ]


def test_a_state_that_cannot_be_recorded_does_not_prevent_the_stop(tmp_path: Path) -> None:
    (tmp_path / "unreachable").touch()
    with ToyStack(tmp_path, role("a", SLEEPS)) as stack:
        stack.wait_for_text("everything is ready")
        stack.signal(signal.SIGTERM)
        assert stack.exit_code() == 0
        assert "could not record the state draining: no database" in stack.output()


def test_a_database_that_hangs_does_not_delay_the_exit(tmp_path: Path) -> None:
    (tmp_path / "hangs").touch()
    with ToyStack(tmp_path, role("a", SLEEPS)) as stack:
        stack.wait_for_text("everything is ready")
        stack.signal(signal.SIGTERM)
        assert stack.exit_code() == 0


def test_a_failed_start_is_not_recorded_as_a_drain(tmp_path: Path) -> None:
    with ToyStack(tmp_path, {"name": "a", "argv": ["/nowhere"], "restart": False}) as stack:
        assert stack.exit_code() == 1
    assert (tmp_path / "states").read_text().split() == ["stopped"]


def test_a_drain_has_no_time_limit_and_prints_the_number_of_runs(tmp_path: Path) -> None:
    drains = role("worker", ends_slowly(1.5), stop_timeout_seconds=None)
    with ToyStack(tmp_path, drains) as stack:
        stack.wait_for_text("listening")
        stack.signal(signal.SIGINT)
        stack.wait_for_text("waiting for 3 runs to finish")
        assert stack.exit_code() == 0
    assert not (tmp_path / "interrupted").exists()


def test_a_second_ctrl_c_interrupts_and_then_kills_the_remaining_processes(tmp_path: Path) -> None:
    deaf = role("worker", IGNORES_TERM, stop_timeout_seconds=None, kill_signal="SIGQUIT")
    with ToyStack(tmp_path, deaf) as stack:
        stack.wait_for_text("deaf")
        stack.signal(signal.SIGINT)
        stack.wait_for_text("waiting for")
        assert not (tmp_path / "interrupted").exists()
        stack.signal(signal.SIGINT)
        wait_for(lambda: (tmp_path / "interrupted").exists())
        assert stack.process.poll() is None, "the grace period was skipped"
        assert stack.exit_code() == 1
        assert "killed: worker" in stack.output()


def test_runs_that_end_after_the_second_ctrl_c_make_a_clean_stop(tmp_path: Path) -> None:
    slow = role("worker", ends_slowly(1), stop_timeout_seconds=None)
    redis = role("redis", ends_slowly(0.1), stop_stage=1)
    with ToyStack(tmp_path, slow, redis) as stack:
        wait_for(lambda: stack.output().count("listening") == 2)
        stack.signal(signal.SIGINT)
        stack.wait_for_text("draining")
        stack.signal(signal.SIGINT)
        assert stack.exit_code() == 0, stack.output()


def test_a_third_ctrl_c_kills_without_delay(tmp_path: Path) -> None:
    deaf = role("worker", IGNORES_TERM, stop_timeout_seconds=None)
    with ToyStack(tmp_path, deaf) as stack:
        stack.wait_for_text("deaf")
        for word in ("draining", "stopping running agents", "killed: "):
            stack.signal(signal.SIGINT)
            stack.wait_for_text(word, seconds=1.5)
        assert stack.exit_code() == 1


def test_a_role_that_ignores_term_is_killed_after_its_time(tmp_path: Path) -> None:
    with ToyStack(tmp_path, role("beat", IGNORES_TERM, stop_timeout_seconds=0.5)) as stack:
        stack.wait_for_text("deaf")
        started = time.monotonic()
        stack.signal(signal.SIGINT)
        assert stack.exit_code() == 1
        assert 0.5 <= time.monotonic() - started < 3


def test_a_killed_supervisor_leaves_no_orphan(tmp_path: Path) -> None:
    roles = [
        role("redis", SLEEPS, death_signal="SIGTERM"),
        role("beat", IGNORES_TERM, death_signal="SIGKILL"),
        role("worker", IGNORES_TERM, death_signal="SIGQUIT"),
    ]
    with ToyStack(tmp_path, *roles) as stack:
        wait_for(lambda: stack.output().count("deaf") == 2 and "everything" in stack.output())
        children = stack.children()
        assert len(children) == 3
        stack.process.kill()
        wait_for(lambda: all_gone(children), 2)


def test_a_supervisor_that_ignores_the_signal_of_its_death_leaves_no_orphan(tmp_path: Path) -> None:
    """A script that starts it in the background has SIGQUIT ignored, and a role that has not yet
    installed its handler would ignore SIGQUIT, too."""
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        stack = ToyStack(tmp_path, role("worker", SLEEPS, death_signal="SIGQUIT"))
    finally:
        signal.signal(signal.SIGQUIT, before)
    with stack:
        stack.wait_for_text("everything is ready")
        children = stack.children()
        assert children
        stack.process.kill()
        wait_for(lambda: all_gone(children), 2)


def test_a_supervisor_killed_while_it_starts_leaves_no_orphan(tmp_path: Path) -> None:
    roles = [role(f"r{i}", SLEEPS, ready_file=str(tmp_path / "never")) for i in range(8)]
    with ToyStack(tmp_path, *roles) as stack:
        wait_for(lambda: len(stack.children()) >= 2)
        stack.process.send_signal(signal.SIGSTOP)
        children = stack.children()
        stack.process.kill()
        wait_for(lambda: all_gone(children), 2)


def test_ctrl_c_while_starting_stops_the_started_processes(tmp_path: Path) -> None:
    never = role("b", SLEEPS, ready_file=str(tmp_path / "never"), start_stage=1)
    with ToyStack(tmp_path, role("a", SLEEPS), never) as stack:
        wait_for(lambda: stack.output().count("pid") == 2)
        children = stack.children()
        stack.signal(signal.SIGINT)
        assert stack.exit_code() == 0
        assert all_gone(children)
        assert "everything is ready" not in stack.output()


def test_the_terminals_ctrl_c_reaches_only_the_supervisor(tmp_path: Path) -> None:
    """The kernel signals the whole foreground group of the terminal's session."""
    with ToyStack(tmp_path, role("a", SLEEPS)) as stack:
        stack.wait_for_text("everything is ready")
        group, session = os.getpgid(stack.process.pid), os.getsid(stack.process.pid)
        (child,) = stack.children()
        assert os.getpgid(child) != group
        assert os.getsid(child) != session


def test_a_terminal_gets_colours_and_a_closed_terminal_causes_no_error(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    with ToyStack(tmp_path, role("a", SLEEPS), stdout=theirs) as stack:
        os.close(theirs)
        seen = b""
        while b"ready" not in seen or b"pid" not in seen:
            seen += os.read(ours, 4096)
        assert b"\x1b[36ma  |\x1b[0m pid" in seen
        children = stack.children()
        os.close(ours)
        stack.signal(signal.SIGTERM)
        assert stack.exit_code() == 0
        assert all_gone(children)


def test_a_file_gets_no_colours(tmp_path: Path) -> None:
    with ToyStack(tmp_path, role("a", SLEEPS)) as stack:
        stack.wait_for_text("a  | pid")
        assert "\x1b[" not in stack.output()
