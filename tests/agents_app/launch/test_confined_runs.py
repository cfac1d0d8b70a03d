"""Whole runs in their sandbox: what a hostile agent cannot do, what is stored and logged."""

import os
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.harness import HARNESSES
from agents_app.models import Agent, Run
from agents_app.runners import this_kernel
from agents_app.worker.execute import Host
from tests.agents_app.executing import Executing, do, printed
from tests.agents_app.fleet import Fleet
from tests.parts.missing import missing

pytestmark = pytest.mark.django_db
MARKERS = 0

# Each line names what it got, if it got something.
HOSTILE = """
cd $DATA
for secret in credential_keys secret_key drover.sqlite3 up.log $OTHER/prompt.md; do
    cat $secret >/dev/null 2>&1 && echo "read $secret"
    (echo x >>$secret) 2>/dev/null && echo "wrote $secret"
done
ls $DATA $DATA/runs $OTHER $HOME_OF_USER >/dev/null 2>&1 && echo listed
for process in /proc/[0-9]*; do
    pid=${process#/proc/}
    case $pid in $$) continue ;; esac
    [ "$(sed 's/.*) [A-Z] //' $process/stat 2>/dev/null | cut -d' ' -f3)" = $$ ] && continue
    [ -n "$(tr -d '\\0' 2>/dev/null <$process/environ)" ] && echo "environ $process"
done
kill -0 $PPID 2>/dev/null && echo "signalled the worker"
kill -0 $VICTIM 2>/dev/null && echo "signalled a run"
cp /bin/true $DATA/planted 2>/dev/null && echo planted
mkdir $HOME_OF_USER/.claude-hooks 2>/dev/null && echo "planted in the home"
echo survived
"""


@pytest.fixture(autouse=True)
def _landlock() -> None:
    if this_kernel().missing:
        missing("a kernel with Landlock 6", "use Linux 6.12 or newer")


def script_agent(fleet: Fleet, script: str, **columns: object) -> Agent:
    return fleet.agent(**{"command": ["sh", "-c", script], "runtime": {"sandbox": {}}, **columns})


@pytest.mark.django_db(transaction=True)
def test_a_hostile_run_reaches_nothing_of_drover(fleet: Fleet, host: Host):
    """Guard: with `sandbox: off` the same script prints a line for nearly everything."""
    CONF.data.mkdir(parents=True, exist_ok=True)
    names = ("credential_keys", "secret_key", "drover.sqlite3", "up.log")
    written = [path for name in names if not (path := CONF.data / name).exists()]
    for path in written:
        path.write_text("secret")
    victim = Executing(fleet, fleet.agent("victim", command=["sleep", "30"]))
    try:
        env = {
            "DATA": str(CONF.data),
            "OTHER": f"{CONF.data}/runs/{victim.run.pk}",
            "VICTIM": str(victim.control.pid),
            "HOME_OF_USER": str(Path.home()),
        }
        run = do(fleet, host, script_agent(fleet, HOSTILE, env=env))
        assert printed(run.pk) == "survived\n"
        off = {"sandbox": {"mode": "off"}}
        free = do(fleet, host, script_agent(fleet, HOSTILE, name="free", env=env, runtime=off))
        got = printed(free.pk)
    finally:
        victim.close()
        for path in written:
            path.unlink()
    assert "signalled the worker" in got
    assert "read credential_keys" in got
    assert "environ /proc/" in got


def test_the_run_stores_that_it_was_confined(fleet: Fleet, host: Host):
    run = do(fleet, host, script_agent(fleet, "true"))
    assert (run.state, run.sandbox) == ("succeeded", "on")
    off = {"sandbox": {"mode": "off"}}
    assert do(fleet, host, script_agent(fleet, "true", name="off", runtime=off)).sandbox == "off"


def test_home_and_temporary_files_are_private_and_writable(fleet: Fleet, host: Host):
    agent = script_agent(fleet, 'echo x >"$HOME/kept"; mktemp; echo "$HOME $TMPDIR"; pwd')
    run = do(fleet, host, agent)
    temporary, homes, workdir = printed(run.pk).split("\n")[:3]
    state = CONF.data / "state" / str(agent.pk)
    assert homes == f"{state}/.home {workdir}/.tmp"
    assert temporary.startswith(f"{workdir}/.tmp/")
    assert (state / ".home" / "kept").read_text() == "x\n"
    assert not Path(workdir).exists()


def test_added_paths_can_be_read_and_written(fleet: Fleet, host: Host, tmp_path: Path):
    (tmp_path / "read").write_text("data\n")
    (tmp_path / "out").mkdir()
    added = {"sandbox": {"read": [f"{tmp_path}/read"], "write": [f"{tmp_path}/out"]}}
    script = f"cat {tmp_path}/read; echo x >{tmp_path}/out/new; echo x >{tmp_path}/read"
    run = do(fleet, host, script_agent(fleet, script, runtime=added))
    assert printed(run.pk).startswith("data\n")
    assert (tmp_path / "out" / "new").exists()
    assert (tmp_path / "read").read_text() == "data\n"


def test_the_log_names_the_rule_to_add(fleet: Fleet, host: Host, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("")
    run = do(fleet, host, script_agent(fleet, f"cat {outside}"))
    advice = f"add `sandbox: {{read: [{outside}]}}` to the agent"
    assert printed(run.pk, MARKERS) == f"[the sandbox refused {outside}: {advice}]\n"


def test_hooks_are_in_the_sandbox_too(fleet: Fleet, host: Host, tmp_path: Path):
    (tmp_path / "secret").write_text("top secret")
    hooks = {"pre": [f"cat {tmp_path}/secret || true"], "post": [f"cat {tmp_path}/secret"]}
    run = do(fleet, host, script_agent(fleet, "true", hooks=hooks))
    assert "top secret" not in printed(run.pk)


# --- codex ----------------------------------------------------------------------------------


def test_codex_runs_without_its_own_sandbox_and_the_log_says_so(
    fleet: Fleet, host: Host, tmp_path: Path
):
    tool = tmp_path / "codex"
    tool.write_text('#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)
    command = list(
        HARNESSES["codex"].argv("gpt-5", ("--sandbox", "workspace-write", "--full-auto"))
    )
    read = {"sandbox": {"read": [str(tool)]}}
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = do(fleet, host, fleet.agent(harness="codex", command=command, runtime=read, env=env))
    assert printed(run.pk, MARKERS).startswith("[Codex's own sandbox is off: ")
    expected = "exec --sandbox danger-full-access --json --skip-git-repo-check --model gpt-5 -\n"
    assert printed(run.pk) == expected
    off = {"sandbox": {"mode": "off"}}
    free = fleet.agent("free", harness="codex", command=command, runtime=off, env=env)
    assert printed(do(fleet, host, free).pk).startswith("exec --json")


def test_a_required_sandbox_that_the_kernel_lacks_fails_the_run(
    fleet: Fleet, host: Host, monkeypatch: pytest.MonkeyPatch
):
    from agents_app.runners import Kernel, sandbox

    monkeypatch.setattr(sandbox, "this_kernel", lambda: Kernel(2, True))
    required = {"sandbox": {"mode": "required"}}
    run: Run = do(fleet, host, script_agent(fleet, "true", runtime=required))
    assert run.state == "failed"
    assert run.error.startswith("spawn_failed: sandbox_unavailable: ")
