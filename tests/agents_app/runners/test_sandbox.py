"""The sandbox of a program on this host: what it refuses, as root and as an ordinary user."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.runners import restrict, sandbox
from agents_app.runners.base import Runtime, Sandbox, spawn_error
from agents_app.runners.promises import Kernel, Promise, missing_promises
from agents_app.runners.refusals import advice_on_refusals
from tests.agents_app.runners.programs import SYSTEM_ONLY, Program
from tests.parts.processes import is_gone
from tests.parts.users_part import Users, as_user

pytestmark = pytest.mark.usefixtures("landlock")
OLD = Kernel(landlock=2, filters_calls=True)


@pytest.fixture(params=["root", "ordinary user"])
def output_of(request: pytest.FixtureRequest, users: Users) -> Callable[..., str]:
    """Runs a script in a sandbox, as this user, and returns what it printed."""
    ordinary = request.param != "root"
    place = users.public_directory(users.worker if ordinary else "root")

    def execute(script: str) -> str:
        program = Program(place, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY)
        return program.run().sink.text().decode()

    def run(script: str) -> str:
        return as_user(users.worker, lambda: execute(script)) if ordinary else execute(script)

    run.place = place  # type: ignore[attr-defined]
    return run


def test_files_outside_can_neither_be_read_nor_written_nor_executed(output_of):
    secret = output_of.place / "credential_keys"
    secret.write_text("top secret")
    secret.chmod(0o666)
    program = output_of.place / "tool"
    program.write_text("#!/bin/sh\necho executed\n")
    program.chmod(0o755)
    printed = output_of(
        f"cat {secret}; echo new > {secret}; {program}; ls {output_of.place}; rm {secret}; "
        "echo mine > own && cat own"
    )
    assert printed.count("ermission denied") == 5
    assert "executed" not in printed
    assert "mine" in printed.split()
    assert secret.read_text() == "top secret"


def test_processes_outside_can_neither_be_signalled_nor_read(output_of):
    printed = output_of(
        "kill -0 $PPID && echo signalled; cat /proc/$PPID/environ >/dev/null && echo read; "
        "cat /proc/$PPID/mem >/dev/null 2>&1 && echo mem; sleep 9 & kill $! && echo own"
    )
    assert "own" in printed.split()
    assert not {"signalled", "read", "mem"} & set(printed.split())


def test_limits_and_priorities_of_others_cannot_be_changed(output_of):
    printed = output_of(
        "prlimit --pid $PPID --cpu=1:1 && echo limited; renice -n 9 -p $PPID && echo reniced; "
        "taskset -p 1 $PPID && echo bound; chrt -i -p 0 $PPID && echo idle; "
        "ionice -c 3 -p $PPID && echo io; ulimit -n 99 && nice -n 1 taskset 1 true && echo own"
    )
    words = set(printed.split())
    assert "own" in words
    assert not {"limited", "reniced", "bound", "idle", "io"} & words


def test_the_program_has_no_privileges_and_cannot_gain_any(output_of):
    printed = output_of("grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status")
    values = dict(line.split(":\t") for line in printed.splitlines())
    assert {values[name] for name in ("CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (values["NoNewPrivs"], values["Seccomp"]) == ("1", "2")


def test_tracing_of_processes_is_refused(tmp_path):
    """As strace would, with the system call itself: PTRACE_TRACEME."""
    call = "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.ptrace(0, 0, 0, 0)"
    script = f"{call}; print(ctypes.get_errno())"
    inside = replace(SYSTEM_ONLY, read=(*SYSTEM_ONLY.read, sys.prefix, sys.base_prefix))
    run = Program(tmp_path, sys.executable, "-c", script, sandbox=inside).run()
    assert run.sink.text() == b"1\n"


def meet(place: Path) -> tuple[int, str, bool]:
    """What a run sees of another run of its user: its pid, the output, and whether it survived."""
    first = Program(place, "/bin/sh", "-c", "echo $$ > pid; sleep 20", sandbox=SYSTEM_ONLY).start()
    pid = first.noted_pid()
    script = f"cat /proc/{pid}/environ; cat {first.cwd}/pid; kill {pid}; ls -l /proc/{pid}/cwd/"
    second = Program(place, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    survived = not is_gone(pid)
    first.control.stop("enough", grace_seconds=0)
    first.join()
    return pid, second.sink.text().decode(), survived


@pytest.mark.parametrize("ordinary", [False, True])
def test_two_runs_of_one_user_can_neither_read_nor_signal_each_other(users: Users, ordinary: bool):
    place = users.public_directory(users.worker if ordinary else "root")
    found = as_user(users.worker, lambda: meet(place)) if ordinary else meet(place)
    pid, printed, survived = found
    assert survived
    assert "DROVER_RUN_ID" not in printed
    assert str(pid) not in [line.strip() for line in printed.splitlines()]


def test_other_threads_of_the_worker_keep_their_rights(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("still readable")
    program = Program(tmp_path, "/bin/sh", "-c", "sleep 20", sandbox=SYSTEM_ONLY).start()
    program.pid()
    assert outside.read_text() == "still readable"
    done = subprocess.run(["cat", outside], capture_output=True, text=True, check=False)
    assert done.stdout == "still readable"
    program.control.stop("enough", grace_seconds=0)
    program.join()


# --- strays ---------------------------------------------------------------------------------


@pytest.mark.fault("F31")
@pytest.mark.parametrize("kernel", [Kernel(7, True), OLD], ids=["signals", "no signal scope"])
def test_a_daemon_without_an_environment_dies_with_its_run_beside_other_runs(
    tmp_path, monkeypatch, kernel
):
    """The kernel knows the sandbox of the daemon, which has no other trace of its run."""
    monkeypatch.setattr(sandbox, "this_kernel", lambda: kernel)
    wait = "echo up > up; while ! [ -e end ]; do sleep 0.02; done"
    daemon = "env -i setsid sh -c 'setsid sleep 300 & echo $! > pid' </dev/null >/dev/null 2>&1 &"
    other = Program(tmp_path, "/bin/sh", "-c", wait, sandbox=SYSTEM_ONLY).start()
    other.note("up")
    script = f"{daemon} while ! [ -s pid ]; do sleep 0.01; done"
    run = Program(tmp_path, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    assert is_gone(run.noted_pid())
    assert not other.ended
    (other.cwd / "end").touch()
    assert other.join().outcome.exit_code == 0


def test_without_landlock_no_process_counts_as_inside(tmp_path, monkeypatch):
    """There the thread reaches all processes, and each daemon would belong to the first run."""
    monkeypatch.setattr(sandbox, "this_kernel", lambda: Kernel(0, True))
    box = Sandbox(read=("/",))
    thread, child = sandbox.start_in_sandbox(
        box, lambda: subprocess.Popen(["sleep", "9"]), drop_capabilities=False
    )
    assert thread is not None
    try:
        assert not thread.contains(child.pid)
        assert not thread.contains(os.getpid())
    finally:
        thread.close()
        child.kill()
        child.wait()


@pytest.mark.fault("F31")
def test_a_daemon_that_names_another_run_dies_with_its_own(tmp_path):
    wait = "echo up > up; while ! [ -e end ]; do sleep 0.02; done"
    other = Program(tmp_path, "/bin/sh", "-c", wait, sandbox=SYSTEM_ONLY).start()
    other.note("up")
    forged = f"env DROVER_RUN_ID={other.run_id} setsid sleep 300 </dev/null >/dev/null 2>&1 &"
    script = f"{forged} echo $! > pid; sleep 0.1"
    run = Program(tmp_path, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    assert is_gone(run.noted_pid())
    (other.cwd / "end").touch()
    other.join()


@pytest.mark.fault("F32")
def test_limits_hold_in_the_sandbox_too(tmp_path):
    limited = Runtime(pids_limit=900)
    options = {"runtime": limited, "sandbox": SYSTEM_ONLY}
    printed = Program(tmp_path, "sh", "-c", "echo began", **options).run().sink.text()
    assert printed == b"began\n"
    outcome = Program(tmp_path, "no-such-program", **options).run().outcome
    assert outcome.error.startswith("ENOENT: 'no-such-program'")


# --- what is said ---------------------------------------------------------------------------


def test_a_program_that_the_sandbox_refuses_is_named_with_the_rule_to_add(tmp_path):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    run = Program(tmp_path, str(program), sandbox=SYSTEM_ONLY).run()
    assert run.outcome.kind == "spawn_failed"
    assert run.outcome.error == (
        f"EACCES: the sandbox of the run refuses {program}: "
        f"add `sandbox: {{read: [{program}]}}` to the agent"
    )


def test_the_interpreter_of_a_script_is_named_if_it_is_refused(tmp_path):
    interpreter = tmp_path / "interpreter"
    interpreter.symlink_to("/bin/sh")
    script = tmp_path / "script"
    script.write_text(f"#!{interpreter}\n")
    script.chmod(0o755)
    inside = Sandbox(read=(str(script),))
    spec = replace(Program(tmp_path, str(script)).spec, sandbox=inside)
    error = PermissionError(13, "Permission denied", str(script))
    assert f"refuses {interpreter}:" in spawn_error(spec, error)


def test_paths_that_the_output_reports_as_refused_get_advice(tmp_path):
    outside, own = tmp_path / "outside", tmp_path / "own"
    for directory in (outside, own):
        directory.mkdir()
    (outside / "file").write_text("")
    inside = Sandbox(own_write=(str(own),), hidden=(str(tmp_path / "data"),))
    (tmp_path / "data").mkdir()
    output = (
        f"cat: {outside}/file: Permission denied\n"
        f"sh: 1: cannot create {outside}/new: Permission denied\n"
        f"open('{own}/x'): EACCES\n{tmp_path}/data: Permission denied\nfine: {tmp_path}\n"
    )
    assert advice_on_refusals(output.encode(), inside) == {
        f"{outside}/file": f"add `sandbox: {{read: [{outside}/file]}}` to the agent",
        f"{outside}/new": f"add `sandbox: {{write: [{outside}]}}` to the agent",
    }


def test_a_run_collects_what_its_output_reports_as_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("")
    run = Program(tmp_path, "/bin/cat", str(outside), sandbox=SYSTEM_ONLY).run()
    assert list(run.control.refusals) == [str(outside)]
    assert run.control.sandbox == "on"


def test_a_refusal_that_is_written_piece_by_piece_is_found(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("")
    pieces = f"printf 'cat: '; sleep 0.05; printf {outside}; sleep 0.05; echo ': Permission denied'"
    run = Program(tmp_path, "/bin/sh", "-c", f"({pieces}) >&2", sandbox=SYSTEM_ONLY).run()
    assert list(run.control.refusals) == [str(outside)]


# --- other kernels --------------------------------------------------------------------------


def test_each_version_of_landlock_keeps_its_promises():
    assert Kernel(7, True).missing == ()
    assert Kernel(5, True).missing == (Promise.SIGNALS,)
    assert OLD.missing == (Promise.TRUNCATION, Promise.SIGNALS)
    assert Kernel(0, False).missing == tuple(Promise)
    assert Kernel(0, False).summary == "none"
    assert missing_promises(OLD.summary) == OLD.missing
    assert missing_promises("on") == missing_promises("") == ()


@pytest.mark.parametrize("version", range(1, 7))
def test_an_older_kernel_is_used_as_far_as_it_goes(tmp_path, monkeypatch, version):
    """The rights that a kernel does not know are left out: it would refuse the whole ruleset."""
    monkeypatch.setattr(sandbox, "this_kernel", lambda: Kernel(version, False))
    (tmp_path / "secret").write_text("top secret")
    script = f"cat {tmp_path}/secret; echo mine > own && cat own"
    run = Program(tmp_path, "/bin/sh", "-c", script, sandbox=SYSTEM_ONLY).run()
    printed = run.sink.text().decode()
    assert "top secret" not in printed
    assert "mine" in printed.split()


def test_a_kernel_without_any_sandbox_runs_the_program_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "this_kernel", lambda: Kernel(0, False))
    (tmp_path / "file").write_text("read")
    run = Program(tmp_path, "/bin/cat", str(tmp_path / "file"), sandbox=SYSTEM_ONLY).run()
    assert run.sink.text() == b"read"


def test_a_required_sandbox_refuses_a_kernel_that_does_not_keep_every_promise(
    tmp_path, monkeypatch
):
    required = replace(SYSTEM_ONLY, required=True)
    assert Program(tmp_path, "/bin/true", sandbox=required).run().outcome.exit_code == 0
    monkeypatch.setattr(sandbox, "this_kernel", lambda: OLD)
    outcome = Program(tmp_path, "/bin/true", sandbox=required).run().outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith(
        "sandbox_unavailable: this kernel does not keep: truncation, signals (Landlock 2)"
    )


# --- the filter of system calls -------------------------------------------------------------


def decision(machine: str, architecture: int, number: int, *arguments: int) -> int:
    """What the filter answers: 0 to allow, else an errno."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *values)
    program = list(struct.iter_unpack("=HBBI", restrict.filter_program(machine)))
    at = accumulator = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        if code == restrict.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif code == restrict.RETURN:
            return 0 if k == restrict.RET_ALLOW else k & 0xFFFF
        else:
            holds = accumulator == k if code == restrict.EQUAL else accumulator >= k
            at += yes if holds else no


@pytest.mark.parametrize("machine", restrict.ARCHITECTURES)
@pytest.mark.parametrize("index", [0, 1])
def test_the_filter_allows_calls_on_the_caller_and_refuses_others(machine, index):
    architecture, numbers = restrict.ARCHITECTURES[machine][index]
    prlimit, setpriority, ioprio, scheduling, tracing = numbers
    high = 0x7F00_0000_0000

    def decide(number: int, *arguments: int) -> int:
        return decision(machine, architecture, number, *arguments)

    assert decide(prlimit, 0, 0, high) == decide(prlimit, 77, 0, 0) == 0
    assert decide(prlimit, 77, 0, high) == decide(prlimit, 77, 0, 5) == 1
    for number, whole_user in ((setpriority, 2), (ioprio, 3)):
        assert decide(number, 0, 0) == decide(number, 1, 0) == 0
        assert decide(number, 0, 77) == decide(number, whole_user, 0) == 1
    for number in scheduling:
        assert (decide(number, 0), decide(number, 77)) == (0, 1)
    assert {decide(number) for number in tracing} == {1}
    assert decide(1) == 0
    assert decision(machine, 0x1234, 1) == 38


def test_the_filter_refuses_the_second_table_of_x86_64():
    assert decision("x86_64", 0xC000003E, 0x40000000 | 1) == 38


def test_a_fatal_signal_ends_a_program_as_without_a_sandbox(tmp_path):
    run = Program(tmp_path, "/bin/sh", "-c", "kill -SEGV $$", sandbox=SYSTEM_ONLY).run()
    assert run.outcome.exit_code == -signal.SIGSEGV


def test_temporary_files_of_others_are_out_of_reach(output_of):
    assert "ermission denied" in output_of(f"ls {Path('/tmp')}")
