"""A worker executes runs of real programs: input, endings, output."""

import contextlib
import json
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from agents_app.conf import CONF
from agents_app.launch import prepare
from agents_app.models import RunOutput
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import Fleet, live_run, run_states

# --- how a run ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "state", "error"),
    [
        ("exit 0", "succeeded", ""),
        ("exit 3", "failed", "exit code 3"),
        ("exit 10", "failed", "auth failure (exit code 10)"),
        ("exit 124", "timed_out", "the program reported a timeout (exit code 124)"),
        ("kill -SEGV $$", "failed", "killed by SIGSEGV"),
    ],
)
def test_the_exit_code_says_how_the_run_ended(fleet: Fleet, host: Host, script, state, error):
    run = do(fleet, host, fleet.agent(command=shell(script)))
    assert (run.state, run.error) == (state, error)
    assert run.pid
    assert run.slot is None


def test_a_run_that_takes_too_long_is_timed_out(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(command=["sleep", "60"], timeout_seconds=0.2))
    assert (run.state, run.error) == ("timed_out", "timed out after 0.2 s")


@pytest.mark.parametrize(
    ("command", "errno"),
    [(["/no/such/program"], "ENOENT"), (["/etc/passwd"], "EACCES"), (["no-such-word"], "ENOENT")],
)
@pytest.mark.fault("F44")
def test_a_program_that_cannot_start_fails_the_run_and_frees_its_slot(
    fleet: Fleet, host: Host, command, errno
):
    agent = fleet.agent(command=command)
    first, _ = fleet.enqueue(agent), fleet.enqueue(agent)
    assert execute.execute(live_run(first).pk, host) == 2
    assert run_states(agent) == ["failed", "failed"]
    for run in agent.runs.all():
        assert run.error.startswith(f"spawn_failed: {errno}: {command[0]!r}")


def test_runs_of_an_agent_without_a_command_fail_with_the_reason(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(command=[]))
    assert run.state == "failed"
    assert "command" in run.error


def test_after_an_exception_the_run_ends_and_its_slot_is_free(fleet: Fleet, host: Host):
    agent = fleet.agent(runtime={"type": "teleport"})
    run = do(fleet, host, agent)
    assert (run.state, run.slot) == ("failed", None)
    assert run.error == "not_performed: KeyError: 'teleport'"
    assert host.live == {}


def test_the_end_of_a_run_is_recorded_after_a_database_outage(fleet: Fleet, host: Host):
    """Reading the definition fails after the start: only this worker can end the run."""
    run = live_run(fleet.enqueue(fleet.agent()))
    failures = [OperationalError("the server closed the connection")]

    def fail_once(execute_sql, sql, *rest):
        if 'FROM "drover_agent"' in sql and failures:
            raise failures.pop()
        return execute_sql(sql, *rest)

    with connection.execute_wrapper(fail_once), contextlib.suppress(OperationalError):
        execute.execute(run.pk, host)
    run.refresh_from_db()
    assert not failures
    assert run.state != "running"


def test_a_run_that_another_worker_started_is_not_executed(fleet: Fleet, host: Host, tmp_path):
    agent = fleet.agent(command=["touch", str(tmp_path / "ran")])
    item = fleet.enqueue(agent)
    job = fleet.start(item, worker=fleet.worker())
    assert execute.execute(job.run_id, host) == 0
    assert not (tmp_path / "ran").exists()
    assert run_states(agent) == ["running"]


def test_a_hint_without_a_pending_run_does_nothing(fleet: Fleet, host: Host):
    assert execute.execute(12345, host) == 0


# --- what a run gets ------------------------------------------------------------------------


def test_the_prompt_is_on_stdin_and_in_a_file(fleet: Fleet, host: Host):
    agent = fleet.agent(
        command=shell('cat; echo ---; cat "$DROVER_PROMPT_FILE"'), instructions="Count sheep."
    )
    out = printed(do(fleet, host, agent, prompt="in the barn ✓").pk)
    on_stdin, in_file = out.split("---\n")
    assert on_stdin == in_file
    assert "Count sheep." in on_stdin
    assert "in the barn ✓" in on_stdin


def test_a_run_has_its_own_environment_and_none_of_the_server(
    fleet: Fleet, host: Host, monkeypatch
):
    monkeypatch.setenv("DJANGO_SECRET_KEY", "canary")
    prepare._server_environment.cache_clear()
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    agent = fleet.agent(command=["python3", "-c", script], env={"COLOUR": "blue"})
    run = do(fleet, host, agent)
    env = json.loads(printed(run.pk))
    assert env["DROVER_RUN_ID"] == str(run.pk)
    assert (env["DROVER_AGENT"], env["DROVER_TRIGGER"]) == ("reporter", "manual")
    assert env["DROVER_ATTEMPT"] == "1"
    assert env["DROVER_TRACE_ID"] == run.trace_id
    assert env["COLOUR"] == "blue"
    assert "canary" not in env.values()
    assert not [name for name in env if name.startswith(("DJANGO", "DATABASE", "REDIS"))]


def test_a_run_has_a_private_directory_that_is_removed_afterwards(fleet: Fleet, host: Host):
    script = "pwd; stat -c %a .; touch left-over; mkdir d; touch d/e"
    run = do(fleet, host, fleet.agent(command=shell(script)))
    workdir, mode = printed(run.pk).split()
    assert (workdir, mode) == (str(CONF.data / "runs" / str(run.pk)), "700")
    assert not Path(workdir).exists()


def test_the_state_directory_is_kept_for_the_next_run(fleet: Fleet, host: Host):
    agent = fleet.agent(command=shell('cd "$DROVER_STATE_DIR"; echo x >> seen; wc -l < seen'))
    first, second = do(fleet, host, agent), do(fleet, host, agent)
    assert int(printed(second.pk)) == int(printed(first.pk)) + 1


def test_a_program_of_the_agent_is_found_beside_its_file(fleet: Fleet, host: Host, tmp_path):
    program = tmp_path / "hello.sh"
    program.write_text("#!/bin/sh\necho hello $1\n")
    program.chmod(0o755)
    agent = fleet.agent(command=["./hello.sh", "you"], directory=str(tmp_path))
    assert printed(do(fleet, host, agent).pk) == "hello you\n"


@pytest.mark.fault("F35")
def test_output_is_kept_in_order_by_stream_and_counted(fleet: Fleet, host: Host):
    script = "echo one; sleep 0.05; echo two >&2; sleep 0.05; echo three; printf '\\0\\377'"
    run = do(fleet, host, fleet.agent(command=shell(script)))
    pieces = [
        (piece.stream, bytes(piece.data))
        for piece in RunOutput.objects.filter(run=run).order_by("seq")
    ]
    assert pieces == [(1, b"one\n"), (2, b"two\n"), (1, b"three\n\0\xff")]
    assert (run.output_bytes, run.output_cut_bytes) == (16, 0)


@pytest.mark.parametrize(("letter", "count"), [("a", 200_000), ("漢", 50_000), ("🐑", 40_000)])
def test_a_long_prompt_in_any_script_arrives_whole(fleet: Fleet, host: Host, letter, count):
    """The kernel refuses a program with a single variable above 128 KiB, counted in bytes."""
    agent = fleet.agent(command=["wc", "-c"])
    run = do(fleet, host, agent, prompt=letter * count)
    assert (run.state, run.error) == ("succeeded", "")
    assert int(printed(run.pk)) > len(letter.encode()) * count
