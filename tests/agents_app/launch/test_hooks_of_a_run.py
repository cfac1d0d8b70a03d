"""The stage of a run: one time limit for everything on it, and what is still done when it is up."""

import time
from pathlib import Path

import pytest

from agents_app.launch.hooks import Stage, output_of, run_post_hooks, run_pre_hooks
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
    """A runner that ends as it is told, after so long, and remembers what it was to run."""

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


def test_what_the_hooks_took_is_not_given_to_the_program_again():
    runner = Scripted(seconds=0.05)
    stage = Stage(runner, RunControl(), 100)
    assert run_pre_hooks(stage, SPEC, ["a", "b"], Sink()) is None
    stage.run(SPEC, Sink())
    assert runner.ran[2].timeout_seconds <= 99.9


@pytest.mark.parametrize(("limit", "most"), [(1000, 60), (5, 5)])
def test_a_command_in_the_instructions_has_a_minute_or_what_is_left(limit, most):
    runner = Scripted()
    output_of(Stage(runner, RunControl(), limit), SPEC, "date")
    assert most - 1 < runner.ran[0].timeout_seconds <= most
    assert runner.ran[0].argv == ("sh", "-c", "date")


@pytest.mark.parametrize(("limit", "most"), [(1000, 300), (30, 30)])
def test_a_hook_has_five_minutes_or_what_is_left(limit, most):
    runner = Scripted()
    run_pre_hooks(Stage(runner, RunControl(), limit), SPEC, ["x"], Sink())
    assert most - 1 < runner.ran[0].timeout_seconds <= most


def test_nothing_is_run_when_the_time_is_up():
    runner = Scripted()
    assert Stage(runner, RunControl(), 0).run(SPEC, Sink()).kind == "timed_out"
    assert runner.ran == []


def test_after_its_time_a_run_leaves_its_hooks_the_grace_and_lets_them_be_stopped():
    runner, control = Scripted(), RunControl()
    assert run_post_hooks(Stage(runner, control, 0), SPEC, ["x"], Sink(), Ending("failed")) == []
    assert runner.ran[0].timeout_seconds <= 10
    assert runner.controls == [control]
    assert runner.ran[0].env == {
        "A": "b",
        "DROVER_RUN_STATE": "failed",
        "DROVER_EXIT_CODE": "",
        "DROVER_RUN_ERROR": "",
    }


def test_after_a_stop_hooks_have_the_grace_and_are_not_stopped_by_it():
    runner, control = Scripted(), RunControl()
    control.stop("enough")
    run_post_hooks(Stage(runner, control, 500), SPEC, ["x"], Sink(), Ending("stopped"))
    assert runner.ran[0].timeout_seconds <= 10
    assert runner.controls[0].request is None


def test_after_a_stop_at_once_nothing_is_run():
    runner, control = Scripted(), RunControl()
    control.stop("now", grace_seconds=0)
    run_post_hooks(Stage(runner, control, 500), SPEC, ["x"], Sink(), Ending("stopped"))
    assert runner.ran == []


def test_every_hook_that_failed_after_the_run_is_named():
    runner = Scripted(
        Outcome("exited", 2), Outcome("exited", 0), Outcome("spawn_failed", None, "x")
    )
    stage = Stage(runner, RunControl(), 500)
    assert run_post_hooks(stage, SPEC, ["a\nb", "c", "d"], Sink(), Ending("succeeded")) == [
        "hooks.post: a b: exit code 2",
        "hooks.post: d: spawn_failed: x",
    ]


@pytest.mark.parametrize("kind", ["unavailable", "lost"])
def test_a_hook_that_has_nowhere_to_run_is_not_a_hook_that_failed(kind):
    stage = Stage(Scripted(Outcome(kind, None, "docker_unavailable: away")), RunControl(), 60)
    ending = run_pre_hooks(stage, SPEC, ["true"], Sink())
    assert ending == Ending(kind, error="docker_unavailable: away")
