"""Hooks with events of real runs: which of them run, what they get, and what a failure means."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents_app.launch import event_hooks
from agents_app.models import Agent, Run, RunEvent, RunOutput, Trigger
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed, shell
from tests.agents_app.fleet import NOON, Fleet, at, live_run

WRITE = "cat > {}"
SAY = {"type": "shell", "command": 'echo "$DROVER_HOOK_EVENT $DROVER_RUN_STATE"'}


def whole_log(run: Run) -> str:
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def listening(*hooks: Any, on_error: tuple[Any, ...] = (), **more: Any) -> dict[str, Any]:
    return {"after_run": list(hooks), "on_error": list(on_error), **more}


def keep(path: Path, **more: Any) -> dict[str, Any]:
    """A hook that keeps the context it gets."""
    return {"type": "shell", "command": WRITE.format(path), **more}


def fired(fleet: Fleet, host: Host, agent: Agent) -> Run:
    """A scheduled run, executed."""
    fleet.fire(fleet.schedule(agent, name="daily"))
    run = live_run(agent.work_items.get())
    assert execute.execute(run.pk, host) == 1
    run.refresh_from_db()
    return run


# --- the context ----------------------------------------------------------------------------


def test_a_shell_hook_gets_the_context_on_its_standard_input(
    fleet: Fleet, host: Host, tmp_path: Path
):
    agent = fleet.agent(
        command=shell("echo working; echo aside >&2"), hooks=listening(keep(tmp_path / "context"))
    )
    run = do(fleet, host, agent)
    context = json.loads((tmp_path / "context").read_text())
    assert run.started_at is not None and run.finished_at is not None
    assert context.pop("job") == {
        "id": str(run.pk),
        "agentId": "reporter",
        "startedAt": "2026-03-02T12:00:00.000Z",
        "completedAt": "2026-03-02T12:00:00.000Z",
        "durationMs": 0,
    }
    assert context.pop("result") == {"success": True, "output": "working\naside\n"}
    assert context == {
        "event": "completed",
        "agent": {"id": "reporter", "name": "reporter"},
        "metadata": {},
    }


def test_the_context_of_a_scheduled_run_names_its_schedule(
    fleet: Fleet, host: Host, tmp_path: Path
):
    agent = fleet.agent(command=shell("exit 3"), hooks=listening(keep(tmp_path / "context")))
    run = fired(fleet, host, agent)
    context = json.loads((tmp_path / "context").read_text())
    assert (run.state, context["event"]) == ("failed", "failed")
    assert context["job"]["scheduleName"] == "daily"
    assert context["result"] == {"success": False, "output": "", "error": "exit code 3"}


def test_the_output_of_a_tool_is_its_answer(fleet: Fleet, host: Host, tmp_path: Path):
    answer = json.dumps({"type": "result", "is_error": False, "result": "all is well"})
    agent = fleet.agent(
        command=shell(f"echo '{answer}'"),
        harness="claude-code",
        hooks=listening(keep(tmp_path / "context")),
    )
    do(fleet, host, agent)
    assert json.loads((tmp_path / "context").read_text())["result"]["output"] == "all is well"


def test_of_long_output_the_context_has_the_end(fleet: Fleet, host: Host, tmp_path: Path):
    agent = fleet.agent(command=shell("seq 1 100000"), hooks=listening(keep(tmp_path / "context")))
    do(fleet, host, agent)
    output = json.loads((tmp_path / "context").read_text())["result"]["output"]
    assert len(output) == 16 * 1024 and output.endswith("99999\n100000\n")


def test_no_secret_is_in_the_context(fleet: Fleet, host: Host, tmp_path: Path):
    secret = "s3cret-of-the-agent"
    set_credential(fleet.tenant, parse_name("ci_token"), {"value": secret}, "ann", NOON)
    agent = fleet.agent(
        command=shell(
            'echo "$CI_TOKEN"; echo "{\\"k\\": \\"$CI_TOKEN\\"}" > metadata.json; exit 4'
        ),
        credentials=["ci_token"],
        hooks=listening(keep(tmp_path / "context")),
    )
    run = do(fleet, host, agent)
    context = json.loads((tmp_path / "context").read_text())
    assert context["result"]["output"] == "[redacted ci_token]\n"
    assert context["metadata"] == run.metadata == {"k": "[redacted ci_token]"}


# --- events ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        ("exit 0", 60, "completed succeeded\n"),
        ("exit 7", 60, "failed failed\nfailed failed\n"),
        ("sleep 60", 0.5, "timeout timed_out\ntimeout timed_out\n"),
    ],
)
def test_after_run_follows_every_ending_and_on_error_failures(
    fleet: Fleet, host: Host, script: str, timeout: float, expected: str
):
    agent = fleet.agent(
        command=shell(script), timeout_seconds=timeout, hooks=listening(SAY, on_error=(SAY,))
    )
    assert printed(fired(fleet, host, agent).pk) == expected


def test_a_scheduled_run_that_is_stopped_has_the_event_cancelled(durable_fleet: Fleet):
    agent = durable_fleet.agent(command=["sleep", "60"], hooks=listening(SAY, on_error=(SAY,)))
    executing = Executing(durable_fleet, agent, trigger=Trigger.SCHEDULE)
    executing.control.stop("enough")
    assert executing.ended()
    run = agent.runs.get()
    assert (run.state, printed(run.pk)) == ("stopped", "cancelled stopped\n")


def test_a_run_stopped_without_a_grace_period_says_that_its_hooks_were_not_run(
    durable_fleet: Fleet,
):
    agent = durable_fleet.agent(command=["sleep", "60"], hooks=listening(SAY | {"name": "tell"}))
    executing = Executing(durable_fleet, agent)
    executing.control.stop("now", grace_seconds=0)
    assert executing.ended()
    assert whole_log(agent.runs.get()) == (
        "[hooks.after_run: tell]\n"
        "[hooks.after_run: not run: the run was stopped without a grace period]\n"
    )


def test_hooks_see_the_state_that_the_signals_of_the_run_make(
    fleet: Fleet, host: Host, tmp_path: Path
):
    """Without a gateway the signal is a file; the run fails, although its program exits with 0."""
    agent = fleet.agent(
        command=shell('printf 12 > "$AL_SIGNAL_DIR/exit"'), hooks=listening(SAY, on_error=(SAY,))
    )
    run = do(fleet, host, agent)
    assert (run.state, run.exit_code) == ("failed", 12)
    assert printed(run.pk) == "failed failed\n" * 2


def test_on_events_selects_hooks(fleet: Fleet, host: Host):
    hooks = listening(
        SAY | {"on_events": ["failed", "timeout"]}, SAY | {"on_events": ["completed"]}
    )
    run = do(fleet, host, fleet.agent(hooks=hooks))
    assert printed(run.pk) == "completed succeeded\n"


def test_a_run_whose_pre_hook_failed_has_hooks_too(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(hooks=listening(on_error=(SAY,), pre=["exit 3"])))
    assert (run.state, printed(run.pk)) == ("failed", "failed failed\n")


# --- metadata -------------------------------------------------------------------------------


def test_metadata_of_the_file_decides_about_hooks_of_a_scheduled_run(fleet: Fleet, host: Host):
    hooks = listening(
        SAY | {"when": "metadata.changed"},
        {"type": "shell", "command": "echo never", "when": "metadata.quiet"},
        metadata_file="out/facts.json",
    )
    script = """mkdir out && echo '{"changed": true, "quiet": 0}' > out/facts.json"""
    run = fired(fleet, host, fleet.agent(command=shell(script), hooks=hooks))
    assert printed(run.pk) == "completed succeeded\n"
    assert run.metadata == {"changed": True, "quiet": 0}


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo '[1]' > metadata.json", "metadata.json is not a JSON object"),
        ("echo '{' > metadata.json", "metadata.json is not valid JSON"),
        ("ln -s /etc/passwd metadata.json", "metadata.json cannot be read"),
        ("mkfifo metadata.json", "metadata.json is a link or no regular file"),
        ("echo x > x; ln x metadata.json", "metadata.json is a link or no regular file"),
        ("head -c 70000 /dev/zero > metadata.json", "has more than 65536 bytes"),
    ],
)
def test_a_metadata_file_that_cannot_be_used_is_in_the_log_of_the_run(
    fleet: Fleet, host: Host, script: str, problem: str
):
    run = do(fleet, host, fleet.agent(command=shell(script), hooks=listening(SAY)))
    assert (run.state, run.metadata) == ("succeeded", {})
    assert f"[metadata_file: {problem}" in whole_log(run) or problem in whole_log(run)
    assert printed(run.pk) == "completed succeeded\n"


# --- failures -------------------------------------------------------------------------------


def test_a_hook_that_fails_stops_no_other_and_changes_no_outcome(fleet: Fleet, host: Host):
    hooks = listening({"type": "shell", "command": "exit 3"}, SAY)
    run = do(fleet, host, fleet.agent(hooks=hooks))
    assert (run.state, run.error) == ("succeeded", "")
    assert whole_log(run) == (
        "[hooks.after_run: exit 3]\n[hooks.after_run: exit code 3]\n"
        f"[hooks.after_run: {SAY['command']}]\ncompleted succeeded\n[hooks.after_run: done]\n"
    )


def test_without_continue_on_error_a_failed_hook_fails_the_run(fleet: Fleet, host: Host):
    gate = {"type": "shell", "name": "gate", "command": "exit 3", "continue_on_error": False}
    agent = fleet.agent(hooks=listening(gate, SAY, on_error=(SAY,)))
    run = fired(fleet, host, agent)
    assert (run.state, run.error) == ("failed", "hooks.after_run: gate: exit code 3")
    assert printed(run.pk) == "completed succeeded\n" + "failed failed\n"
    assert agent.work_items.get().state == "failed"


def test_an_exit_signal_does_not_undo_the_failure_of_a_hook(fleet: Fleet, host: Host):
    gate = {"type": "shell", "command": "exit 3", "continue_on_error": False}
    script = 'printf 0 > "$AL_SIGNAL_DIR/exit"'
    run = do(fleet, host, fleet.agent(command=shell(script), hooks=listening(gate)))
    assert run.state == "failed"


def test_a_run_that_has_failed_keeps_its_error(fleet: Fleet, host: Host):
    gate = {"type": "shell", "command": "exit 3", "continue_on_error": False}
    run = do(fleet, host, fleet.agent(command=shell("exit 10"), hooks=listening(gate)))
    assert (run.state, run.error) == ("failed", "auth failure (exit code 10)")


def test_a_hook_has_thirty_seconds_or_its_own_time(fleet: Fleet, host: Host, monkeypatch):
    monkeypatch.setattr(event_hooks, "SHELL_SECONDS", 0.2)
    sleep = {"type": "shell", "command": "sleep 60"}
    hooks = listening(sleep, sleep | {"timeout_seconds": 0.3})
    run = do(fleet, host, fleet.agent(hooks=hooks))
    assert "[hooks.after_run: timed out after 0.2 s]" in whole_log(run)
    assert "[hooks.after_run: timed out after 0.3 s]" in whole_log(run)


def test_a_hook_that_does_not_read_its_input_is_not_blocked(fleet: Fleet, host: Host):
    agent = fleet.agent(
        command=shell("seq 1 100000"), hooks=listening({"type": "shell", "command": "true"})
    )
    assert "[hooks.after_run: done]" in whole_log(do(fleet, host, agent))


def test_a_hook_runs_in_the_sandbox_of_the_run(fleet: Fleet, host: Host, tmp_path: Path):
    agent = fleet.agent(
        runtime={"sandbox": {}},
        hooks=listening({"type": "shell", "command": f"touch {tmp_path}/outside"}),
    )
    run = do(fleet, host, agent)
    if run.sandbox in ("off", "none"):
        pytest.skip("this kernel has no sandbox")
    assert not (tmp_path / "outside").exists()
    assert "[hooks.after_run: exit code 1]" in whole_log(run)


# --- notices --------------------------------------------------------------------------------


def test_a_notice_is_an_event_for_the_notification_targets(fleet: Fleet, host: Host):
    fleet.tenant.notify_targets.create(url="https://hooks.example/x", events=["run.failed"])
    hooks = listening({"type": "notify", "message": "the report is out"}, {"type": "notify"})
    run = do(fleet, host, fleet.agent(hooks=hooks))
    told = RunEvent.objects.filter(name="run.notified", run=run).order_by("pk")
    assert [event.detail for event in told] == [
        "the report is out",
        f"reporter: run {run.pk} completed after 0 s",
    ]


def test_a_notice_without_a_target_is_a_problem(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(hooks=listening({"type": "notify"})))
    assert (
        "[hooks.after_run: there is no notification target: add [[notify]] to config.toml]"
        in whole_log(run)
    )


# --- runs that fail before their start ------------------------------------------------------


def test_a_run_without_its_credential_has_the_hooks_that_need_no_program(fleet: Fleet, host: Host):
    fleet.tenant.notify_targets.create(url="https://hooks.example/x", events=[])
    hooks = listening(on_error=({"type": "notify", "message": "broken"}, SAY | {"name": "say"}))
    run = do(fleet, host, fleet.agent(credentials=["ci_token"], hooks=hooks))
    assert run.error.startswith("credential_missing")
    assert RunEvent.objects.get(name="run.notified").detail == "broken"
    assert "[hooks.on_error: not run: the run has no working directory" in whole_log(run)


def test_runs_without_hooks_read_no_row_and_keep_no_output(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch
):
    """Guard: the path of a run without hooks must not become slower."""

    def unexpected(*_: object, **__: object) -> None:
        raise AssertionError("a run without hooks with events came here")

    monkeypatch.setattr("agents_app.worker.after_run._run_hooks", unexpected)
    monkeypatch.setattr("agents_app.worker.perform.run_hooks_of_ending", unexpected)
    monkeypatch.setattr("agents_app.worker.perform.ProgramOutputEnd", unexpected)
    run = do(fleet, host, fleet.agent(command=["echo", "x"], hooks={"post": ["true"]}))
    assert run.state == "succeeded"


def test_the_clock_of_the_worker_gives_the_end(fleet: Fleet, tmp_path: Path):
    times = iter([NOON, *(at(5) for _ in range(20))])
    host = Host(fleet.worker().pk, lambda: next(times))
    agent = fleet.agent(hooks=listening(keep(tmp_path / "context")))
    run = live_run(fleet.enqueue(agent))
    execute.execute(run.pk, host)
    job = json.loads((tmp_path / "context").read_text())["job"]
    assert (job["completedAt"], job["durationMs"]) == ("2026-03-02T12:00:05.000Z", 5000)
