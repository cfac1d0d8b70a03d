"""A worker executes runs: real programs, what they get, how they end, and who goes on."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from agents_app import execute, lifecycle
from agents_app.commit import in_transaction
from agents_app.conf import CONF
from agents_app.execute import Host
from agents_app.models import Agent, Run, RunOutput, Tenant, WorkItem
from tests.agents.fleet import NOON, Fleet, at, event_names, live_run, run_states, work_states
from tests.parts.waiting import wait_for


@pytest.fixture
def host(fleet: Fleet) -> Host:
    return Host(fleet.worker().pk, lambda: NOON)


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def printed(run_id: int, stream: int = 1) -> str:
    pieces = RunOutput.objects.filter(run=run_id, stream=stream).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def do(fleet: Fleet, host: Host, agent: Agent, **request: object) -> Run:
    """Ask for a run, execute it, and see what became of it."""
    run = live_run(fleet.ask(agent, **request))
    assert execute.execute(run.pk, host) == 1
    run.refresh_from_db()
    return run


# --- how a run ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "state", "error"),
    [
        ("exit 0", "succeeded", ""),
        ("exit 3", "failed", "exit code 3"),
        ("exit 10", "failed", "auth failure (exit code 10)"),
        ("exit 124", "timed_out", "the program said it timed out (exit code 124)"),
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
def test_a_program_that_cannot_start_fails_the_run_and_frees_its_slot(
    fleet: Fleet, host: Host, command, errno
):
    agent = fleet.agent(command=command)
    first, _ = fleet.ask(agent), fleet.ask(agent)
    assert execute.execute(live_run(first).pk, host) == 2
    assert run_states(agent) == ["failed", "failed"]
    for run in agent.runs.all():
        assert run.error.startswith(f"spawn_failed: {errno}: {command[0]!r}")


def test_an_agent_without_a_command_fails_its_runs_and_says_so(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(command=[]))
    assert run.state == "failed"
    assert "command" in run.error


def test_whatever_goes_wrong_the_run_ends_and_its_slot_is_free(fleet: Fleet, host: Host):
    agent = fleet.agent(runtime={"type": "teleport"})
    run = do(fleet, host, agent)
    assert (run.state, run.slot) == ("failed", None)
    assert run.error == "not_performed: KeyError: 'teleport'"
    assert host.live == {}


def test_a_database_that_is_away_for_a_moment_leaves_no_run_without_an_end(
    fleet: Fleet, host: Host
):
    """The start is committed, then reading the definition fails: nobody else will end the run."""
    run = live_run(fleet.ask(fleet.agent()))
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


def test_a_run_somebody_else_has_started_is_not_executed(fleet: Fleet, host: Host, tmp_path):
    agent = fleet.agent(command=["touch", str(tmp_path / "ran")])
    item = fleet.ask(agent)
    job = fleet.start(item, worker=fleet.worker())
    assert execute.execute(job.run_id, host) == 0
    assert not (tmp_path / "ran").exists()
    assert run_states(agent) == ["running"]


def test_a_hint_for_nothing_is_a_normal_thing(fleet: Fleet, host: Host):
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


def test_a_run_knows_who_it_is_and_nothing_of_the_server(fleet: Fleet, host: Host, monkeypatch):
    monkeypatch.setenv("DJANGO_SECRET_KEY", "canary")
    execute._server_environment.cache_clear()
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


def test_a_run_has_a_private_directory_that_is_gone_afterwards(fleet: Fleet, host: Host):
    script = "pwd; stat -c %a .; touch left-over; mkdir d; touch d/e"
    run = do(fleet, host, fleet.agent(command=shell(script)))
    room, mode = printed(run.pk).split()
    assert (room, mode) == (str(CONF.data / "runs" / str(run.pk)), "700")
    assert not Path(room).exists()


def test_what_a_run_keeps_in_its_state_directory_is_there_for_the_next(fleet: Fleet, host: Host):
    agent = fleet.agent(command=shell('cd "$DROVER_STATE_DIR"; echo x >> seen; wc -l < seen'))
    first, second = do(fleet, host, agent), do(fleet, host, agent)
    assert int(printed(second.pk)) == int(printed(first.pk)) + 1


def test_a_program_of_the_agent_is_found_beside_its_file(fleet: Fleet, host: Host, tmp_path):
    program = tmp_path / "hello.sh"
    program.write_text("#!/bin/sh\necho hello $1\n")
    program.chmod(0o755)
    agent = fleet.agent(command=["./hello.sh", "you"], directory=str(tmp_path))
    assert printed(do(fleet, host, agent).pk) == "hello you\n"


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


# --- going on -------------------------------------------------------------------------------


def test_one_thread_goes_on_while_its_slot_has_work(fleet: Fleet, host: Host):
    agent = fleet.agent()
    first, *_ = (fleet.ask(agent) for _ in range(4))
    assert execute.execute(live_run(first).pk, host) == 4
    assert work_states(agent) == ["done"] * 4
    assert event_names(agent.runs.latest("id").pk) == [
        "run.admitted",
        "run.started",
        "run.succeeded",
    ]


def test_after_some_runs_in_a_row_the_slot_goes_back_through_the_queue(
    fleet: Fleet, host: Host, monkeypatch
):
    monkeypatch.setattr(execute, "MOST_RUNS_IN_A_ROW", 3)
    agent = fleet.agent()
    first, *_ = (fleet.ask(agent) for _ in range(5))
    assert execute.execute(live_run(first).pk, host) == 3
    assert run_states(agent) == ["succeeded"] * 3 + ["pending"]


def test_after_some_time_in_a_row_the_slot_goes_back_through_the_queue(
    fleet: Fleet, host: Host, monkeypatch
):
    monkeypatch.setattr(execute, "MOST_SECONDS_IN_A_ROW", 0.0)
    agent = fleet.agent()
    first, *_ = (fleet.ask(agent) for _ in range(3))
    assert execute.execute(live_run(first).pk, host) == 1
    assert run_states(agent) == ["succeeded", "pending"]


def test_under_a_projects_cap_a_finished_run_lets_the_oldest_work_of_all_in(
    fleet: Fleet, host: Host
):
    Tenant.objects.update(scale=1)
    a, b = fleet.agent("a"), fleet.agent("b")
    first, oldest, _ = fleet.ask(a), fleet.ask(b), fleet.ask(a)
    assert execute.execute(live_run(first).pk, host) == 1
    assert live_run(oldest).state == "pending"
    assert work_states(a) == ["done", "queued"]


def test_a_scheduled_run_that_asks_for_it_runs_again_in_the_same_thread(
    fleet: Fleet, host: Host, tmp_path
):
    script = f"echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -ge 3 ] || exit 42"
    agent = fleet.agent(command=shell(script))
    fleet.fire(fleet.schedule(agent))
    assert execute.execute(agent.runs.get().pk, host) == 3
    assert [(run.state, run.rerun) for run in agent.runs.order_by("id")] == [
        ("succeeded", 0),
        ("succeeded", 1),
        ("succeeded", 2),
    ]


def test_exit_42_of_a_run_a_person_asked_for_is_plain_success(fleet: Fleet, host: Host):
    run = do(fleet, host, fleet.agent(command=shell("exit 42")))
    assert (run.state, run.exit_code) == ("succeeded", 42)


def test_a_draining_worker_finishes_its_run_and_begins_no_other(fleet: Fleet, host: Host):
    agent = fleet.agent()
    first, _ = fleet.ask(agent), fleet.ask(agent)
    run = live_run(first)
    clocked = Host(host.worker_id, lambda: _drain_then(host, NOON), host.live, host.draining)
    assert execute.execute(run.pk, clocked) == 1
    assert run_states(agent) == ["succeeded", "pending"]


def _drain_then(host: Host, now):
    host.draining.set()
    return now


def test_a_hint_that_reaches_a_draining_worker_begins_nothing(fleet: Fleet, host: Host):
    agent = fleet.agent()
    run = live_run(fleet.ask(agent))
    host.draining.set()
    assert execute.execute(run.pk, host) == 0
    assert run_states(agent) == ["pending"]


# --- while it runs --------------------------------------------------------------------------


class Executing:
    """A run that is executed on a thread, as a worker does, with commits that all can see."""

    def __init__(self, fleet: Fleet, agent: Agent, **request: object) -> None:
        self.over = False
        self.error: Exception | None = None
        self.host = Host(fleet.worker().pk, self._clock)
        self.item = fleet.ask(agent, **request)
        self.run = live_run(self.item)
        self._thread = threading.Thread(target=self._execute, daemon=True)
        self._thread.start()
        wait_for(lambda: self.run.pk in self.host.live and self.control.pid)

    def _clock(self):
        if self.over:
            raise RuntimeError("the test is over")
        return at(time.monotonic() % 1000)

    def _execute(self) -> None:
        try:
            execute.execute(self.run.pk, self.host)
        except Exception as error:
            if not self.over:
                self.error = error
        finally:
            connection.close()

    @property
    def control(self):
        return self.host.live[self.run.pk]

    def ended(self, seconds: float = 10) -> bool:
        self._thread.join(seconds)
        assert self.error is None, self.error
        return not self._thread.is_alive()

    def close(self) -> None:
        self.over = True
        if self.run.pk in self.host.live:
            self.control.stop("the test is over", grace_seconds=0)
        assert self.ended()


@pytest.fixture
def executing(durable_fleet: Fleet) -> Iterator[object]:
    made: list[Executing] = []

    def begin(agent: Agent, **request: object) -> Executing:
        made.append(Executing(durable_fleet, agent, **request))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def lose(run: Run) -> None:
    run.refresh_from_db()
    assert in_transaction(lambda: lifecycle.lose(run, at(40), "lost: its worker died"))


def _until(path: Path, then: str) -> list[str]:
    return shell(f"while [ ! -e {path} ]; do sleep 0.02; done; {then}")


def test_a_run_that_is_told_to_stop_is_stopped_with_the_reason(durable_fleet: Fleet, executing):
    agent = durable_fleet.agent(command=["sleep", "60"])
    going_on = executing(agent)
    going_on.control.stop("stopped by ann")
    assert going_on.ended()
    run = agent.runs.get()
    assert (run.state, run.error, work_states(agent)) == ("stopped", "stopped by ann", ["failed"])
    assert going_on.host.live == {}


def test_output_can_be_read_while_the_run_goes_on(durable_fleet: Fleet, executing):
    agent = durable_fleet.agent(command=shell("echo early; sleep 60"))
    going_on = executing(agent)
    wait_for(lambda: printed(going_on.run.pk) == "early\n", 3)
    assert run_states(agent) == ["running"]


def test_a_superseded_worker_writes_no_output(durable_fleet: Fleet, executing, tmp_path):
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late"))
    going_on = executing(agent)
    lose(going_on.run)
    (tmp_path / "go").touch()
    assert going_on.ended()
    assert run_states(agent) == ["lost"]
    assert not RunOutput.objects.exists()


def test_a_superseded_worker_writes_no_output_while_the_run_goes_on(
    durable_fleet: Fleet, executing, tmp_path
):
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late; sleep 60"))
    going_on = executing(agent)
    lose(going_on.run)
    (tmp_path / "go").touch()
    time.sleep(0.8)  # longer than output is held back before it is written
    assert not RunOutput.objects.exists()


def test_a_run_whose_owner_was_deleted_meanwhile_ends(durable_fleet: Fleet, executing, tmp_path):
    """Its rows are gone: there is nothing to write, and nothing to try again."""
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "echo late"))
    going_on = executing(agent)
    durable_fleet.tenant.delete()
    (tmp_path / "go").touch()
    assert going_on.ended(5)
    assert not Run.objects.exists()


def test_a_thread_that_hands_over_sends_the_hint_itself(
    durable_fleet: Fleet, executing, broker, monkeypatch, tmp_path
):
    monkeypatch.setattr(execute, "MOST_RUNS_IN_A_ROW", 1)
    agent = durable_fleet.agent(command=_until(tmp_path / "go", "true"))
    going_on = executing(agent)
    broker.client().flushall()
    waiting = durable_fleet.ask(agent)
    (tmp_path / "go").touch()
    assert going_on.ended()
    assert live_run(waiting).state == "pending"
    wait_for(lambda: broker.client().llen(f"{CONF.redis_prefix}{agent.queue}") == 1)


def test_nothing_of_a_run_is_left_behind(durable_fleet: Fleet, executing, tmp_path):
    agent = durable_fleet.agent(command=shell(f"sleep 60 & echo $! > {tmp_path}/pid; exit 0"))
    descriptors = len(os.listdir("/proc/self/fd"))
    run = live_run(durable_fleet.ask(agent))
    host = Host(durable_fleet.worker().pk, lambda: NOON)
    execute.execute(run.pk, host)
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 2)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 3
    assert WorkItem.objects.get().state == "done"
