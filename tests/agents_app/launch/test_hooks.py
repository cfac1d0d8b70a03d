"""Hooks of real runs: pre-hooks can end the run, post-hooks run after every ending."""

from pathlib import Path

import pytest

from agents_app.launch import hooks as hooks_module
from agents_app.models import Run, RunOutput
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed, shell
from tests.agents_app.fleet import Fleet
from tests.parts.waiting import wait_for


def whole_log(run: Run) -> str:
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def test_hooks_run_in_the_workdir_and_environment_of_the_program(fleet: Fleet, host: Host):
    agent = fleet.agent(
        command=shell("cat left; echo $COLOUR; echo more >> left"),
        env={"COLOUR": "blue"},
        hooks={"pre": ["echo $COLOUR > left", "echo second >> left"], "post": ["cat left"]},
    )
    run = do(fleet, host, agent)
    assert run.state == "succeeded"
    assert printed(run.pk) == "blue\nsecond\nblue\n" + "blue\nsecond\nmore\n"


def test_the_output_of_hooks_is_between_markers_in_the_log(fleet: Fleet, host: Host):
    hooks = {"pre": ["echo fetching\n"], "post": ["echo cleaning; exit 4"]}
    run = do(fleet, host, fleet.agent(command=["echo", "working"], hooks=hooks))
    assert whole_log(run) == (
        "[hooks.pre: echo fetching]\nfetching\n[hooks.pre: done]\nworking\n"
        "[hooks.post: echo cleaning; exit 4]\ncleaning\n[hooks.post: exit code 4]\n"
    )


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("exit 3", "exit code 3"),
        ("exit 42", "exit code 42"),
        ("no-such-program-here", "exit code 127"),
        ("kill -TERM $$", "killed by SIGTERM"),
    ],
)
def test_a_failed_pre_hook_ends_the_run(fleet: Fleet, host: Host, command, problem):
    hooks = {"pre": [command, "echo never"], "post": ["echo $DROVER_RUN_STATE"]}
    run = do(fleet, host, fleet.agent(command=["echo", "never"], hooks=hooks))
    assert (run.state, run.error) == ("failed", f"hooks.pre: {command}: {problem}")
    assert printed(run.pk) == "failed\n"
    assert run.exit_code is None


@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        ("exit 0", 60, "succeeded 0 -"),
        ("exit 42", 60, "succeeded 42 -"),
        ("exit 10", 60, "failed 10 auth failure (exit code 10)-"),
        ("kill -SEGV $$", 60, "failed -11 killed by SIGSEGV-"),
        ("sleep 60", 0.5, "timed_out -15 timed out after 0.5 s-"),
    ],
)
def test_post_hooks_get_the_state_of_the_run(fleet: Fleet, host: Host, script, timeout, expected):
    post = 'echo "$DROVER_RUN_STATE $DROVER_EXIT_CODE $DROVER_RUN_ERROR-"'
    agent = fleet.agent(command=shell(script), timeout_seconds=timeout, hooks={"post": [post]})
    run = do(fleet, host, agent)
    assert printed(run.pk) == f"{expected}\n"
    assert run.state == expected.split()[0]


def test_a_failed_post_hook_changes_no_outcome_and_stops_no_other_hook(fleet: Fleet, host: Host):
    hooks = {"post": ["exit 7", "echo still here"]}
    run = do(fleet, host, fleet.agent(hooks=hooks))
    assert (run.state, run.error, run.exit_code) == ("succeeded", "", 0)
    assert printed(run.pk) == "still here\n"


def test_a_post_hook_cannot_change_the_report_of_the_run(fleet: Fleet, host: Host):
    """Only the program's own lines are read."""
    result = '{"type": "result", "is_error": true, "result": "no"}'
    hooks = {"pre": [f"echo '{result}'"], "post": [f"echo '{result}'"]}
    run = do(fleet, host, fleet.agent(harness="claude-code", hooks=hooks))
    assert run.state == "succeeded"


def test_a_hook_has_its_own_time_limit(fleet: Fleet, host: Host, monkeypatch):
    monkeypatch.setattr(hooks_module, "HOOK_SECONDS", 0.2)
    hooks = {"pre": ["sleep 60"]}
    run = do(fleet, host, fleet.agent(hooks=hooks))
    assert (run.state, run.error) == ("failed", "hooks.pre: sleep 60: timed out after 0.2 s")


def test_the_time_limit_of_the_run_ends_its_hooks(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(hooks={"pre": ["sleep 60"]}, timeout_seconds=0.3))
    assert (run.state, run.error) == ("timed_out", "timed out after 0.3 s")


@pytest.mark.parametrize("when", ["pre", "post"])
def test_processes_of_a_hook_are_dead_when_the_run_ends(
    fleet: Fleet, host: Host, tmp_path: Path, when
):
    command = f"setsid sleep 62.5 & echo $! > {tmp_path}/pid"
    do(fleet, host, fleet.agent(hooks={when: [command]}))
    assert not Path(f"/proc/{int((tmp_path / 'pid').read_text())}").exists()


def test_a_stop_ends_the_pre_hook_and_the_post_hook_still_runs(durable_fleet: Fleet):
    hooks = {"pre": ["sleep 60"], "post": ["echo $DROVER_RUN_STATE"]}
    agent = durable_fleet.agent(command=["echo", "never"], hooks=hooks)
    executing = Executing(durable_fleet, agent)
    executing.control.stop("enough")
    assert executing.ended()
    run = agent.runs.get()
    assert (run.state, run.error) == ("stopped", "enough")
    assert printed(run.pk) == "stopped\n"


def test_post_hooks_of_a_stopped_run_end_after_the_grace_period(durable_fleet: Fleet, monkeypatch):
    agent = durable_fleet.agent(command=["sleep", "60"], hooks={"post": ["sleep 60"]})
    monkeypatch.setattr("agents_app.launch.prepare.CONF", _with_grace(0.3))
    executing = Executing(durable_fleet, agent)
    executing.control.stop("enough")
    assert executing.ended(20)
    assert agent.runs.get().state == "stopped"


def test_a_run_stopped_without_a_grace_period_has_no_post_hooks(durable_fleet: Fleet):
    agent = durable_fleet.agent(command=["sleep", "60"], hooks={"post": ["echo never"]})
    executing = Executing(durable_fleet, agent)
    executing.control.stop("now", grace_seconds=0)
    assert executing.ended()
    assert printed(agent.runs.get().pk) == ""


def test_a_stop_during_post_hooks_ends_them_and_keeps_the_outcome(
    durable_fleet: Fleet, tmp_path: Path
):
    hooks = {"post": [f"touch {tmp_path}/begun; sleep 60"]}
    executing = Executing(durable_fleet, durable_fleet.agent(hooks=hooks))
    wait_for(lambda: (tmp_path / "begun").exists())
    executing.control.stop("enough")
    assert executing.ended()
    run = Run.objects.get(pk=executing.run.pk)
    assert (run.state, run.error) == ("succeeded", "")


def _with_grace(seconds: float) -> object:
    from dataclasses import replace

    from agents_app.conf import CONF

    return replace(CONF, grace_seconds=seconds)
