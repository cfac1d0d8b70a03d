"""Commands in instructions are replaced by their output; texts from outside are not executed."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.launch import hooks
from agents_app.launch.injection import has_commands, inject
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed
from tests.agents_app.fleet import Fleet


def prompt_of_run(fleet: Fleet, host: Host, instructions: str, **columns: object) -> str:
    """The prompt that the program of a run reads."""
    agent = fleet.agent(command=["cat"], instructions=instructions, **columns)
    run = do(fleet, host, agent)
    assert run.state == "succeeded", run.error
    return printed(run.pk)


# --- find and replace ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("plain", "plain"),
        ("a !`x` b !`y z`", "a <x> b <y z>"),
        ("!``", "!``"),
        ("! `x`", "! `x`"),
        ("`x`", "`x`"),
        ("!`two\nlines`", "!<two\nlines>"[1:]),
        ("!`open", "!`open"),
    ],
)
def test_commands_are_found_by_their_marks(body, expected):
    assert inject(body, lambda command: f"<{command}>") == expected
    assert has_commands(body) == (body != expected)


def test_commands_in_the_output_of_a_command_are_not_executed():
    assert inject("!`a`!`b`", lambda _: "!`rm -rf x`") == "!`rm -rf x`!`rm -rf x`"


@given(st.text(alphabet="!`ab\n", max_size=30))
def test_a_text_whose_commands_print_themselves_is_unchanged(body):
    assert inject(body, lambda command: f"!`{command}`") == body


# --- in a run -----------------------------------------------------------------------------------


def test_commands_run_in_the_workdir_and_environment_of_the_run(fleet: Fleet, host: Host):
    body = "!`echo $COLOUR $DROVER_AGENT` !`basename $PWD` !`echo ${DATABASE_URL:-none}`"
    expected = prompt_of_run(fleet, host, body, env={"COLOUR": "blue"})
    agent_run = fleet.tenant.agents.get().runs.get()
    assert expected == f"blue reporter {agent_run.pk} none\n"


def test_the_program_finds_files_that_a_command_wrote_to_the_workdir(fleet: Fleet, host: Host):
    agent = fleet.agent(command=["sh", "-c", "cat made"], instructions="!`echo sheep > made`")
    assert printed(do(fleet, host, agent).pk) == "sheep\n"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 3", "[Error: exit code 3]"),
        ("echo gone >&2; echo half; exit 1", "[Error: exit code 1: gone]"),
        ("no-such-program-here", "[Error: exit code 127: "),
        ("printf 'a \\n\\n'", "a\n"),
        ("true", ""),
        ("kill -9 $$", "[Error: oom_killed"),
    ],
)
def test_a_failed_command_is_replaced_by_its_error(fleet: Fleet, host: Host, command, expected):
    assert prompt_of_run(fleet, host, f"!`{command}`").startswith(expected)


def test_a_command_that_takes_too_long_is_ended(fleet: Fleet, host: Host, monkeypatch):
    monkeypatch.setattr(hooks, "INJECTION_SECONDS", 0.2)
    begun = time.monotonic()
    assert prompt_of_run(fleet, host, "x !`sleep 60` y") == "x [Error: timed out after 0.2 s] y\n"
    assert time.monotonic() - begun < 20


def test_the_time_limit_of_the_run_includes_its_commands(fleet: Fleet, host: Host):
    agent = fleet.agent(instructions="!`sleep 60`", timeout_seconds=0.3)
    run = do(fleet, host, agent)
    assert (run.state, run.error) == ("timed_out", "timed out after 0.3 s")


def test_the_output_of_a_command_is_cut_at_a_limit(fleet: Fleet, host: Host):
    expected = prompt_of_run(fleet, host, "!`head -c 10000000 /dev/zero | tr '\\0' x`")
    assert expected == "x" * hooks.MAX_INJECTED_BYTES + "\n[... cut]\n"


def test_processes_of_a_command_are_dead_before_the_program_starts(
    fleet: Fleet, host: Host, tmp_path: Path
):
    command = f"setsid sleep 61.5 & echo $! > {tmp_path}/pid"
    prompt_of_run(fleet, host, f"!`{command}`")
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.fault("F77")
def test_commands_in_texts_from_outside_are_never_run(fleet: Fleet, host: Host, tmp_path: Path):
    """Guard: only the agent's own file is searched for commands."""
    attack = f"!`touch {tmp_path}/pwned`"
    agent = fleet.agent(command=["cat"], instructions="!`echo hi`", params={"x": attack})
    run = do(fleet, host, agent, prompt=attack, context=attack)
    assert printed(run.pk).count(attack) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_stop_while_a_command_runs_stops_the_run(durable_fleet: Fleet):
    agent = durable_fleet.agent(command=["echo", "began"], instructions="!`sleep 60`")
    executing = Executing(durable_fleet, agent)
    executing.control.stop("enough", grace_seconds=0)
    assert executing.ended()
    run = agent.runs.get()
    assert (run.state, run.error) == ("stopped", "enough")
    assert printed(run.pk) == ""
