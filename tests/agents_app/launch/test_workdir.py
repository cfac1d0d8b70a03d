"""The workdir, which the run may own: links and pipes in it do not mislead the worker."""

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
def workdir():
    made, _ = make_workdir(987654, "first")
    yield made
    remove_workdir(987654)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("untouched")
    return path


def test_a_link_in_the_place_of_the_prompt_is_replaced_and_not_followed(workdir, precious):
    (workdir / "prompt.md").unlink()
    (workdir / "prompt.md").symlink_to(precious)
    again, prompt = make_workdir(987654, "second")
    assert (again, prompt) == workdir_of(987654)
    assert prompt.read_text() == "second"
    assert not prompt.is_symlink()
    assert precious.read_text() == "untouched"


def test_a_pipe_in_the_place_of_a_file_does_not_block(workdir):
    os.mkfifo(workdir / "script.sh")
    assert add_file(workdir, "script.sh", "echo").read_text() == "echo"


def test_secrets_are_not_written_into_a_directory_that_the_run_chose(workdir, tmp_path):
    (workdir / ".credentials").symlink_to(tmp_path)
    with pytest.raises(OSError):
        write_secret(workdir, "key", "canary")
    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_for_its_owner_only_and_can_be_written_again(workdir):
    assert write_secret(workdir, "key", "old").stat().st_mode & 0o777 == 0o400
    assert write_secret(workdir, "key", "new").read_text() == "new"


def test_files_added_later_belong_to_the_owner_of_the_workdir(workdir):
    if os.geteuid() != 0:
        missing("leave to give files away", "run the tests as root")
    os.chown(workdir, 4711, 4712)
    for path in (add_file(workdir, "script.sh", "echo"), write_secret(workdir, "key", "canary")):
        assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)
