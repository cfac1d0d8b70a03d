"""TimedRunner: one time limit for all commands of a run, and the grace period of post-hooks."""

import time
from pathlib import Path

import pytest

from agents_app.launch.hooks import TimedRunner, command_output, run_post_hooks, run_pre_hooks
from agents_app.runners.base import Outcome, OutputSink, RunControl, RunSpec
from agents_app.runs.job import Ending
from tests.agents_app.output.test_watchers import Sink

SPEC = RunSpec(
    run_id=1,
    argv=("true",),
    env={"A": "b"},
    cwd=Path(),
    prompt_file=Path(),
    timeout_seconds=100,
    grace_seconds=10,
)


class Scripted:
    """A runner that returns prepared outcomes after a delay, and records the specs."""

    def __init__(self, *outcomes: Outcome, seconds: float = 0) -> None:
        self.outcomes = list(outcomes)
        self.seconds = seconds
        self.ran: list[RunSpec] = []
        self.controls: list[RunControl] = []

    def run(self, spec: RunSpec, control: RunControl, _sink: OutputSink) -> Outcome:
        self.ran.append(spec)
        self.controls.append(control)
        time.sleep(self.seconds)
        return self.outcomes.pop(0) if self.outcomes else Outcome("exited", 0)


def test_the_time_of_hooks_reduces_the_time_of_the_program():
    runner = Scripted(seconds=0.05)
    timed = TimedRunner(runner, RunControl(), 100)
    assert run_pre_hooks(timed, SPEC, ["a", "b"], Sink()) is None
    timed.run(SPEC, Sink())
    assert runner.ran[2].timeout_seconds <= 99.9


@pytest.mark.parametrize(("limit", "most"), [(1000, 60), (5, 5)])
def test_a_command_in_the_instructions_has_a_minute_or_the_remaining_time(limit, most):
    runner = Scripted()
    command_output(TimedRunner(runner, RunControl(), limit), SPEC, "date")
    assert most - 1 < runner.ran[0].timeout_seconds <= most
    assert runner.ran[0].argv == ("sh", "-c", "date")


@pytest.mark.parametrize(("limit", "most"), [(1000, 300), (30, 30)])
def test_a_hook_has_five_minutes_or_the_remaining_time(limit, most):
    runner = Scripted()
    run_pre_hooks(TimedRunner(runner, RunControl(), limit), SPEC, ["x"], Sink())
    assert most - 1 < runner.ran[0].timeout_seconds <= most


def test_nothing_is_run_after_the_time_limit():
    runner = Scripted()
    assert TimedRunner(runner, RunControl(), 0).run(SPEC, Sink()).kind == "timed_out"
    assert runner.ran == []


def test_after_a_timeout_post_hooks_have_the_grace_period_and_can_be_stopped():
    runner, control = Scripted(), RunControl()
    assert (
        run_post_hooks(TimedRunner(runner, control, 0), SPEC, ["x"], Sink(), Ending("failed")) == []
    )
    assert runner.ran[0].timeout_seconds <= 10
    assert runner.controls == [control]
    assert runner.ran[0].env == {
        "A": "b",
        "DROVER_RUN_STATE": "failed",
        "DROVER_EXIT_CODE": "",
        "DROVER_RUN_ERROR": "",
    }


def test_after_a_stop_post_hooks_have_the_grace_period():
    runner, control = Scripted(), RunControl()
    control.stop("enough")
    run_post_hooks(TimedRunner(runner, control, 500), SPEC, ["x"], Sink(), Ending("stopped"))
    assert runner.ran[0].timeout_seconds <= 10
    assert runner.controls[0].request is None


def test_after_a_stop_without_a_grace_period_nothing_is_run():
    runner, control = Scripted(), RunControl()
    control.stop("now", grace_seconds=0)
    run_post_hooks(TimedRunner(runner, control, 500), SPEC, ["x"], Sink(), Ending("stopped"))
    assert runner.ran == []


def test_every_failed_post_hook_is_named():
    runner = Scripted(
        Outcome("exited", 2), Outcome("exited", 0), Outcome("spawn_failed", None, "x")
    )
    timed = TimedRunner(runner, RunControl(), 500)
    assert run_post_hooks(timed, SPEC, ["a\nb", "c", "d"], Sink(), Ending("succeeded")) == [
        "hooks.post: a b: exit code 2",
        "hooks.post: d: spawn_failed: x",
    ]


@pytest.mark.parametrize("kind", ["unavailable", "lost"])
def test_a_hook_without_an_engine_is_unavailable_and_not_failed(kind):
    timed = TimedRunner(Scripted(Outcome(kind, None, "docker_unavailable: away")), RunControl(), 60)
    ending = run_pre_hooks(timed, SPEC, ["true"], Sink())
    assert ending == Ending(kind, error="docker_unavailable: away")
