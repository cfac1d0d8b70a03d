"""Paths of a sandbox that cannot be used, and the search for the program that it refused."""

import errno
import os
from dataclasses import replace

import pytest

from agents_app.runners.base import Sandbox, refused_program
from agents_app.runners.refusals import advice_on_refusals
from agents_app.runners.restrict import OpenRules
from tests.agents_app.runners.programs import Program


@pytest.fixture
def refused_of(tmp_path):
    def find(program: str) -> str:
        inside = Sandbox(read=(str(tmp_path),))
        return refused_program(replace(Program(tmp_path, program).spec, sandbox=inside))

    return find


def test_a_fifo_as_command_does_not_block(tmp_path, refused_of):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o755)
    assert refused_of(str(fifo)) == ""


def test_a_script_that_names_itself_as_its_interpreter_ends(tmp_path, refused_of):
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    script.chmod(0o755)
    assert refused_of(str(script)) == ""


def test_the_interpreter_of_a_script_is_found(tmp_path, refused_of):
    script = tmp_path / "script"
    script.write_text("#! /bin/sh -e\n")
    script.chmod(0o755)
    assert refused_of(str(script)) == "/bin/sh"


def test_paths_that_no_program_could_open_are_left_out(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    rules = OpenRules((str(loop), "/no/such", "/etc/passwd/x", "/etc"), (), 1)
    assert len(rules.rules) == 1
    rules.close()


def test_a_rule_that_cannot_be_opened_for_another_reason_fails_the_run(tmp_path, monkeypatch):
    """Too many open files, for example: the run would silently lack a directory."""
    outcome = Program(tmp_path, "/bin/true", sandbox=Sandbox(read=("/usr", "/bin", "/lib64")))
    real, opened = os.open, []

    def open_one(path: str, flags: int, *rest: int, **options: int) -> int:
        if flags & os.O_PATH and opened:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        fd = real(path, flags, *rest, **options)
        if flags & os.O_PATH:
            opened.append(fd)
        return fd

    monkeypatch.setattr(os, "open", open_one)
    error = outcome.run().outcome.error
    monkeypatch.undo()
    assert error.startswith("EMFILE: '/bin/true' could not start: too many open files")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_private_files_of_a_home_are_not_recommended(tmp_path):
    home, data = tmp_path / "home", tmp_path / "data"
    for directory in (home / ".ssh", home / ".pyenv", data):
        directory.mkdir(parents=True)
    (home / ".ssh" / "key").write_text("")
    paths = (home / ".ssh" / "key", home / "new", home, tmp_path, tmp_path / "new", home / ".pyenv")
    inside = Sandbox(hidden=(str(data),), homes=(str(home),), toolchains=(f"{home}/.pyenv",))
    for path in paths:
        found = advice_on_refusals(f"cat: {path}: Permission denied\n".encode(), inside)
        assert list(found) == ([str(path)] if path.name == ".pyenv" else [])
