"""The program that a sandbox refuses is searched for without waiting and without an end."""

import os
from dataclasses import replace

import pytest

from agents_app.runners.base import Sandbox, refused_program
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
