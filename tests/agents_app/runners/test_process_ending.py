"""Programs that are ended by a timeout or a stop request, with SIGTERM and SIGKILL."""

import time

import pytest

from agents_app.runners.base import Outcome, verdict
from tests.agents_app.runners.programs import Shell
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.usefixtures("nothing_leaks")


def test_a_timeout_ends_the_program_with_sigterm(shell: Shell):
    program = shell("trap 'echo bye; exit 9' TERM; sleep 60 & wait", timeout=0.3).run()
    assert program.outcome.kind == "timed_out"
    assert program.outcome.exit_code == 9
    assert program.outcome.error == "timed out after 0.3 s"
    assert program.sink.text() == b"bye\n"
    assert program.took_seconds < 3


@pytest.mark.parametrize("ending", ["timed_out", "stopped"])
@pytest.mark.fault("F30")
def test_a_program_that_ignores_term_is_killed_after_the_grace(shell: Shell, ending):
    script = "trap '' TERM; echo ready > ready; sleep 60 & while :; do sleep 0.1; done"
    program = shell(script, timeout=0.3 if ending == "timed_out" else 30, grace=0.5)
    if ending == "stopped":
        program.start().note("ready")
        program.control.stop("enough")
        program.join()
    else:
        program.run()
    assert program.outcome.kind == ending
    assert program.outcome.exit_code == -9
    assert 0.5 <= program.took_seconds < 0.5 + 2
    assert verdict(program.outcome).state == ending


def test_a_stop_wakes_the_runner_at_once(shell: Shell):
    program = shell("exec sleep 60").start()
    program.pid()
    asked_at = time.monotonic()
    program.control.stop("a person asked")
    program.join()
    assert time.monotonic() - asked_at < 1
    assert program.outcome.kind == "stopped"
    assert program.outcome.error == "a person asked"


def test_a_stop_without_grace_kills_at_once(shell: Shell):
    program = shell("trap '' TERM; echo > ready; sleep 60; sleep 60", grace=30).start()
    wait_for((program.cwd / "ready").exists)
    program.control.stop("the lease is gone", grace_seconds=0)
    assert program.join(2).outcome.exit_code == -9


def test_a_second_stop_may_shorten_the_grace(shell: Shell):
    program = shell("trap '' TERM; echo > ready; sleep 60; sleep 60", grace=30).start()
    wait_for((program.cwd / "ready").exists)
    program.control.stop("please")
    time.sleep(0.2)
    assert not program.ended
    program.control.stop("now", grace_seconds=0)
    assert program.join(2).outcome.error == "please"


def test_a_stop_before_the_start_starts_nothing(shell: Shell):
    program = shell("echo > started")
    program.control.stop("changed my mind")
    assert program.run().outcome == Outcome("stopped", None, "changed my mind")
    assert not (program.cwd / "started").exists()


def test_a_stopped_process_is_ended_too(shell: Shell):
    program = shell("kill -STOP $$", timeout=0.3, grace=0.3).run()
    assert (program.outcome.kind, program.outcome.exit_code) == ("timed_out", -9)
