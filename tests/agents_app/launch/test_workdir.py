"""The room of a run, which the run may own: nothing it puts there leads the worker elsewhere."""

import os
from pathlib import Path

import pytest

from agents_app.launch.workdir import (
    add_file,
    make_workdir,
    remove_workdir,
    workdir_of,
    write_secret,
)
from tests.parts.missing import missing


@pytest.fixture
def room():
    made, _ = make_workdir(987654, "first")
    yield made
    remove_workdir(987654)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("untouched")
    return path


def test_a_link_in_the_place_of_the_prompt_is_replaced_and_not_followed(room, precious):
    (room / "prompt.md").unlink()
    (room / "prompt.md").symlink_to(precious)
    again, prompt = make_workdir(987654, "second")
    assert (again, prompt) == workdir_of(987654)
    assert prompt.read_text() == "second"
    assert not prompt.is_symlink()
    assert precious.read_text() == "untouched"


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(room):
    os.mkfifo(room / "script.sh")
    assert add_file(room, "script.sh", "echo").read_text() == "echo"


def test_secrets_are_not_written_into_a_directory_that_the_run_chose(room, tmp_path):
    (room / ".credentials").symlink_to(tmp_path)
    with pytest.raises(OSError):
        write_secret(room, "key", "canary")
    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_for_its_owner_only_and_can_be_written_again(room):
    assert write_secret(room, "key", "old").stat().st_mode & 0o777 == 0o400
    assert write_secret(room, "key", "new").read_text() == "new"


def test_what_is_added_later_belongs_to_whoever_the_room_was_given_to(room):
    if os.geteuid() != 0:
        missing("leave to give files away", "run the tests as root")
    os.chown(room, 4711, 4712)
    for path in (add_file(room, "script.sh", "echo"), write_secret(room, "key", "canary")):
        assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)
