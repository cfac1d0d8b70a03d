"""The gate in front of programs with limits: it changes nothing but the time of their start."""

import errno
import os
import pwd
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.runners import process
from agents_app.runners.base import Runtime
from agents_app.runners.child import ChildProcess
from agents_app.runners.gate import Gate, gate_file, gate_program
from tests.agents_app.runners.programs import Program
from tests.agents_app.runners.test_limits import controllers, groups_left
from tests.parts.users_part import Users, as_user, uid_of

__all__ = ["controllers"]
LIMITED = Runtime(pids_limit=900)
pytestmark = pytest.mark.usefixtures("nothing_leaks")


@pytest.fixture(autouse=True)
def _gate_is_open_before() -> None:
    """The descriptor of the gate's program stays open; each test counts descriptors."""
    assert gate_file() >= 0


def run(where: Path, *argv: str) -> Program:
    return Program(where, *argv, runtime=LIMITED).run()


def test_arguments_environment_input_and_descriptors_are_as_without_a_gate(tmp_path):
    script = 'cat; ls /proc/self/fd; echo "$0|$1|$2|"; pwd'
    for argv in (("sh", "-c", script, "a b", "", "ü"), ("env",)):
        outputs = []
        for runtime in (None, LIMITED):
            program = Program(tmp_path, *argv, runtime=runtime)
            program.spec = replace(program.spec, env={"PATH": "/usr/bin:/bin", "ODD-NAME": "x"})
            outputs.append(program.run().sink.text().replace(str(program.run_id).encode(), b"N"))
        assert outputs[0] == outputs[1]
    assert outputs[0] == b"PATH=/usr/bin:/bin\nODD-NAME=x\n"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("no-such-program", "ENOENT: 'no-such-program'"),
        ("/etc/passwd", "EACCES: '/etc/passwd' may not be executed"),
        ("/etc/passwd/x", "ENOTDIR: '/etc/passwd/x'"),
    ],
)
def test_a_program_that_cannot_be_executed_is_named(tmp_path, program, expected):
    outcome = run(tmp_path, program).outcome
    assert outcome.kind == "spawn_failed"
    assert outcome.error.startswith(expected)


def test_a_script_without_its_first_line_is_named(tmp_path):
    script = tmp_path / "script"
    script.write_text("echo x\n")
    script.chmod(0o755)
    assert run(tmp_path, str(script)).outcome.error.startswith("ENOEXEC: ")


def test_a_bare_name_is_searched_in_the_path_of_the_run(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "tool").write_text("#!/bin/sh\necho found\n")
    (tools / "tool").chmod(0o755)
    program = Program(tmp_path, "tool", runtime=LIMITED)
    program.spec = replace(program.spec, env={"PATH": f"/nowhere:/etc/passwd:{tools}:/bin"})
    assert program.run().sink.text() == b"found\n"


@pytest.mark.parametrize("path", ["", ":"])
def test_a_bare_name_without_a_path_to_search_is_not_found(tmp_path, path):
    program = Program(tmp_path, "tool", runtime=LIMITED)
    program.spec = replace(program.spec, env={"PATH": path})
    assert program.run().outcome.error.startswith("ENOENT: 'tool'")


@pytest.mark.parametrize("broken", ["confine", "open_gate", "_ProcessSupervisor"])
def test_an_unexpected_error_after_the_start_leaves_no_process(tmp_path, monkeypatch, broken):
    """The descriptors and children are counted by the fixture of this file."""

    def fail(*_: object) -> None:
        raise OverflowError("unexpected")

    where = ChildProcess if broken == "open_gate" else process
    monkeypatch.setattr(where, broken, fail)
    program = Program(tmp_path, "/bin/sleep", "60", runtime=LIMITED)
    with pytest.raises(OverflowError):
        program.run()


@pytest.mark.fault("F32")
@pytest.mark.parametrize("attempt", range(10))
def test_the_first_fork_of_a_program_is_under_its_limit(tmp_path, controllers, attempt):
    """Its own process is the one that the limit allows; without the gate a few forks succeed."""
    program = Program(
        tmp_path, "/bin/sh", "-c", "/bin/true; echo $?", runtime=Runtime(pids_limit=1)
    )
    text = program.run().sink.text()
    assert b"ork" in text  # Cannot fork, fork: Resource temporarily unavailable
    assert groups_left() == []


def test_a_program_whose_worker_is_gone_never_begins():
    gate = Gate(["/bin/echo", "began"], "")
    waiting = subprocess.Popen(gate.argv, stdout=subprocess.PIPE, **gate.options)
    gate.started()
    gate.close()
    assert waiting.communicate()[0] == b""
    assert waiting.returncode == 127


def change(path: str) -> str:
    """What the kernel answers to a process that tries to change the file."""
    try:
        with open(path, "r+b", buffering=0) as file:
            file.write(b"changed")
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "changed"


@pytest.mark.parametrize("ordinary", [False, True])
def test_the_program_of_the_gate_cannot_be_changed(users: Users, ordinary: bool):
    """All later runs with limits begin with it, whatever user they run as."""
    path = f"/proc/{os.getpid()}/fd/{gate_file()}"
    assert os.stat(gate_file()).st_mode & 0o777 == 0o555
    if ordinary:
        user, group = uid_of(users.agent), pwd.getpwnam(users.agent).pw_gid
        gate = Gate(["/bin/sh"], "")
        identity = {"user": user, "group": group, "extra_groups": []}
        waiting = subprocess.Popen(gate.argv, **gate.options, **identity)
        gate.started()
        path = f"/proc/{waiting.pid}/exe"
        found = as_user(users.agent, lambda: change(path))
        gate.close()
        waiting.wait()
    else:
        found = change(path)
    assert found == ("EACCES" if ordinary else "EPERM")
    assert os.pread(gate_file(), 4096, 0) == gate_program(os.uname().machine)


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 62), ("aarch64", 183)])
def test_the_program_of_the_gate_is_an_elf_file_for_the_machine(machine, number, tmp_path):
    program = gate_program(machine)
    assert program[:7] == b"\x7fELF\x02\x01\x01"
    assert int.from_bytes(program[18:20], "little") == number
    if machine == os.uname().machine:
        return
    emulator = Path(f"/usr/bin/qemu-{machine}-static")
    if not emulator.exists():
        return
    file = tmp_path / "gate"
    file.write_bytes(program)
    file.chmod(0o755)
    gate = Gate(["/bin/echo", "began"], "")
    argv = [str(emulator), "-0", gate.argv[0], str(file), *gate.argv[1:]]
    waiting = subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=gate.options["pass_fds"])
    gate.started()
    gate.open()
    gate.close()
    assert waiting.communicate()[0] == b"began\n"
