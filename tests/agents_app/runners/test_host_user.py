"""Runs as another user of the host: by root, and by a worker that uses sudo."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.runners import RUNNERS, host_user, limits, sudo
from agents_app.runners.base import Limits, Outcome, Runtime, Sandbox, memory_bytes
from agents_app.runners.child import ChildProcess
from tests.agents_app.runners.programs import SYSTEM_ONLY, Program
from tests.parts.processes import all_gone, is_gone
from tests.parts.users_part import Users, as_user, uid_of
from tests.parts.waiting import wait_for

RUNNER = RUNNERS["host-user"]


@pytest.fixture
def shim(users: Users, monkeypatch) -> Iterator[Path]:
    """Where any user may read it; the checkout may be in a private directory."""
    public = users.public_directory()
    runners = Path(sudo.__file__).parent
    (public / "runners").mkdir(mode=0o755)
    copy = Path(shutil.copy(runners / "host_shim.py", public / "runners"))
    for name in ("guard.py", "restrict.py"):
        shutil.copy(runners / name, public / "runners")
    monkeypatch.setattr(sudo, "SHIM", copy)
    users.allow(copy)
    yield copy
    users.forbid()


class Result:
    """What is left of a run when it has come back from another process."""

    def __init__(self, program: Program) -> None:
        self.outcome: Outcome = program.outcome
        self.output = program.sink.text()
        self.refusals = program.control.refusals
        self.seconds = program.took_seconds


class Way:
    """One of the two ways to be another user."""

    def __init__(self, users: Users, name: str) -> None:
        self.users = users
        self.worker = "root" if name == "root" else users.worker
        self.directory = users.public_directory(self.worker)
        self.out = users.public_directory(users.agent)

    def run(
        self,
        script: str,
        act: Callable[[Program], None] | None = None,
        argv: tuple[str, ...] = (),
        **options: object,
    ) -> Result:
        runtime = Runtime(type="host-user", run_as=self.users.agent)
        limits = {name: options.pop(name) for name in ("pids_limit", "memory") if name in options}

        def execute() -> Result:
            argv_ = argv or ("/bin/sh", "-c", script)
            program = Program(
                self.directory,
                *argv_,
                runner=RUNNER,
                runtime=replace(runtime, **limits),  # type: ignore[arg-type]
                **options,  # type: ignore[arg-type]
            )
            if act is not None:
                program.start()
                act(program)
                return Result(program.join())
            return Result(program.run())

        return execute() if self.worker == "root" else as_user(self.worker, execute)

    def note(self, name: str) -> str:
        path = self.out / name
        return wait_for(lambda: path.read_text().strip() if path.exists() else "", message=name)


@pytest.fixture(params=["root", "sudo"])
def way(request: pytest.FixtureRequest, users: Users, shim: Path) -> Way:
    return Way(users, request.param)


def test_the_program_runs_as_the_user_without_other_groups(way: Way):
    result = way.run("id -u; id -G; echo $HOME; echo $USER; cat; pwd; touch mine && echo wrote")
    lines = result.output.decode().splitlines()
    agent = way.users.agent
    uid, groups, home, user, rest, wrote = lines
    assert result.outcome.exit_code == 0
    assert int(uid) == uid_of(agent)
    assert len(groups.split()) == 1
    assert (home, user) == (str(way.users.place / agent), agent)
    assert rest.startswith("hello/")  # the prompt has no line end
    assert wrote == "wrote"


@pytest.mark.parametrize("code", [0, 3, 42, 124])
def test_the_exit_code_is_returned(way: Way, code):
    assert way.run(f"exit {code}").outcome.exit_code == code


def test_a_fatal_signal_is_returned_as_a_negative_exit_code(way: Way):
    assert way.run("kill -SEGV $$").outcome.exit_code == -11


def test_output_is_returned_in_order_and_complete(way: Way):
    result = way.run("echo first; i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done")
    assert result.output.split() == [b"first", *(str(i).encode() for i in range(2000))]


def test_a_stop_reaches_the_other_users_processes(way: Way):
    script = f"echo $$ > {way.out}/pid; trap '' TERM; while :; do sleep 0.1; done"

    def stop(program: Program) -> None:
        way.note("pid")
        program.control.stop("enough", grace_seconds=0.3)

    result = way.run(script, stop)
    assert (result.outcome.kind, result.outcome.error) == ("stopped", "enough")
    assert result.seconds < 8
    assert wait_for(lambda: is_gone(int(way.note("pid"))))


def test_a_stop_sends_sigterm_first(way: Way):
    script = f"trap 'echo bye; exit 5' TERM; echo $$ > {way.out}/pid; while :; do sleep 0.05; done"

    def stop(program: Program) -> None:
        way.note("pid")
        program.control.stop("enough", grace_seconds=10)

    result = way.run(script, stop)
    assert b"bye\n" in result.output
    assert result.outcome.exit_code == 5


def test_a_time_limit_ends_the_program(way: Way):
    result = way.run("sleep 60", timeout=0.5, grace=0.2)
    assert result.outcome.kind == "timed_out"


@pytest.mark.fault("F31")
def test_a_daemonised_process_is_dead_when_the_run_ends(way: Way):
    script = (
        f"setsid sh -c 'echo $$ > {way.out}/daemon; exec sleep 300' >/dev/null 2>&1 &"
        f"while [ ! -s {way.out}/daemon ]; do sleep 0.02; done"
    )
    assert way.run(script).outcome.exit_code == 0
    assert wait_for(lambda: is_gone(int(way.note("daemon"))), 3)


@pytest.mark.fault("F32")
def test_a_fork_bomb_reaches_its_limit_and_leaves_no_process(way: Way):
    script = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all of them"
    result = way.run(script, pids_limit=40, timeout=20)
    assert b"all of them" not in result.output
    assert result.outcome.exit_code != 0
    uid = str(uid_of(way.users.agent))
    owned = [p for p in os.listdir("/proc") if p.isdigit() and _owner_of(p) == uid]
    assert wait_for(lambda: all_gone(map(int, owned)), 5)


def _owner_of(pid: str) -> str:
    try:
        return str(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return ""


def test_a_missing_program_is_named(way: Way):
    outcome = way.run("", argv=("no-such-program",)).outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith("ENOENT: 'no-such-program'")


def test_a_file_that_may_not_be_executed_is_named(way: Way):
    script = way.users.public_directory() / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    outcome = way.run("", argv=(str(script),)).outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith(f"EACCES: '{script}'")


def test_another_run_of_the_same_user_is_not_touched(way: Way):
    first = way.out / "first"
    script = f"echo $$ > {first}; sleep 1.5; echo still here"
    seen = []

    def run_another(_: Program) -> None:
        way.note("first")
        other = Program(
            way.directory,
            *("/bin/sh", "-c", "sleep 0.1"),
            runner=RUNNER,
            runtime=Runtime(type="host-user", run_as=way.users.agent),
        )
        seen.append(other.run().outcome.exit_code)

    result = way.run(script, run_another)
    assert result.output == b"still here\n"


# --- the sandbox on top ---------------------------------------------------------------------


def box(way: Way) -> Sandbox:
    return replace(SYSTEM_ONLY, write=(*SYSTEM_ONLY.write, str(way.out)))


@pytest.mark.parametrize("confined", [True, False])
def test_two_agents_that_share_the_user_cannot_reach_each_other(way: Way, confined: bool):
    """Guard: without a sandbox the second run reads, writes and signals all of it."""
    sandbox = box(way) if confined else None
    script = f"echo mine > secret; echo $PWD > {way.out}/file; echo $$ > {way.out}/pid; sleep 9"
    look = (
        f"pid=$(cat {way.out}/pid); f=$(cat {way.out}/file)/secret; got=;"
        "[ -n \"$(tr -d '\\0' </proc/$pid/environ)\" ] && got=environ;"
        'cat $f && got="$got file"; kill -0 $pid && got="$got signal";'
        f"echo ${{got:-nothing}} > {way.out}/found"
    )

    def run_another(first: Program) -> None:
        way.note("pid")
        runtime = Runtime(type="host-user", run_as=way.users.agent)
        options = {"runner": RUNNER, "runtime": runtime, "sandbox": sandbox}
        Program(way.directory, "/bin/sh", "-c", look, **options).run()  # type: ignore[arg-type]
        first.control.stop("seen", grace_seconds=0)

    way.run(script, run_another, sandbox=sandbox)
    assert way.note("found") == ("nothing" if confined else "environ file signal")


def test_the_program_in_a_sandbox_has_no_privileges_and_writes_only_its_own(way: Way):
    status = "grep -E '^(NoNewPrivs|CapEff)' /proc/self/status"
    script = f"touch own && echo own; touch ~/x; ls /tmp; {status}"
    lines = way.run(script, sandbox=SYSTEM_ONLY).output.decode().splitlines()
    assert "own" in lines
    assert {"NoNewPrivs:\t1", f"CapEff:\t{'0' * 16}"} <= set(lines), lines
    assert sum("ermission denied" in line for line in lines) == 2


def test_a_refused_path_gets_advice(way: Way):
    outside = way.users.public_directory() / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    result = way.run(f"cat {outside}", sandbox=SYSTEM_ONLY)
    assert list(result.refusals) == [str(outside)]


def test_limits_hold_for_the_first_fork_also_through_sudo(way: Way):
    result = way.run("/bin/true; /bin/true; echo $?", pids_limit=1, timeout=20)
    assert b"ork" in result.output


# --- sudo's own -----------------------------------------------------------------------------


@pytest.mark.fault("F44")
def test_a_worker_that_sudo_denies_says_what_to_write_in_sudoers(users: Users, shim: Path):
    users.forbid()
    outcome = Way(users, "sudo").run("true").outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith("sudo_denied: sudo: ")
    assert f"{users.worker} ALL=({users.agent}) NOPASSWD: {shim}" in outcome.error


def test_a_program_that_kills_its_shim_does_not_survive_it(users: Users, shim: Path):
    way = Way(users, "sudo")
    script = f"echo $$ > {way.out}/pid; kill -9 $PPID; sleep 300"
    outcome = way.run(script).outcome
    assert outcome.exit_code != 0
    assert wait_for(lambda: is_gone(int(way.note("pid"))), 5)


def test_the_run_of_a_dead_worker_is_killed(users: Users, shim: Path):
    way = Way(users, "sudo")
    script = f"echo $$ > {way.out}/pid; sleep 300"

    def die(_: Program) -> None:
        way.note("pid")
        os.kill(os.getpid(), 9)

    with pytest.raises(EOFError):
        way.run(script, die)
    assert wait_for(lambda: is_gone(int(way.note("pid"))), 5)


def test_no_data_of_the_run_is_on_a_command_line(users: Users, shim: Path):
    way = Way(users, "sudo")

    def look(program: Program) -> None:
        pid = int(way.note("pid"))
        own = {pid, program.pid()}
        seen = b"".join(Path(f"/proc/{each}/cmdline").read_bytes() for each in own)
        program.control.stop("looked", grace_seconds=0)
        assert b"hello" not in seen
        assert b"DROVER_RUN_ID" not in seen

    way.run(f"echo $$ > {way.out}/pid; sleep 60", look)


@pytest.mark.parametrize("asked", [True, False])
def test_without_control_groups_only_the_shim_limits_a_run_through_sudo(
    tmp_path, monkeypatch, asked
):
    """The process of sudo is one of the worker's user, whose processes would be counted."""
    limited: list[int] = []
    monkeypatch.setattr(limits, "find_hierarchy", lambda: None)
    for module in (limits, host_user):
        monkeypatch.setattr(module, "limit_processes", lambda pid, _: limited.append(pid))
    runtime = Runtime(type="host-user", run_as="x", **({"pids_limit": 40} if asked else {}))
    spec = Program(tmp_path, "/bin/true", runtime=runtime).spec
    for kind in (sudo.ShimChild, ChildProcess):
        child = object.__new__(kind)
        child.pid = 1 if kind is ChildProcess else 2
        assert host_user.HostUserRunner()._confine(spec, child) is None
    assert limited == [1]


# --- who it may be --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [("no-such-user", "no_such_user: "), ("root", "runs_as_root: ")],
)
def test_an_unknown_user_and_root_are_refused(tmp_path, name, expected):
    runtime = Runtime(type="host-user", run_as=name)
    outcome = Program(tmp_path, "/bin/true", runner=RUNNER, runtime=runtime).run().outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith(expected)


def test_the_target_of_a_link_in_the_workdir_keeps_its_owner(users: Users):
    way = Way(users, "root")
    precious = users.public_directory() / "precious"
    precious.write_text("mine")
    program = Program(
        way.directory,
        "/bin/true",
        runner=RUNNER,
        runtime=Runtime(type="host-user", run_as=users.agent),
    )
    (program.cwd / "link").symlink_to(precious)
    assert program.run().outcome.exit_code == 0
    assert precious.stat().st_uid == 0


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 2**29), ("4g", 2**32), ("100", 100), ("8K", 8192), ("7b", 7)]
)
def test_an_amount_of_memory_is_read(text, size):
    assert memory_bytes(text) == size


def test_only_requested_limits_are_set_for_a_process():
    assert Runtime().asked_limits is None
    assert Runtime(pids_limit=20).asked_limits == Limits(pids=20)
