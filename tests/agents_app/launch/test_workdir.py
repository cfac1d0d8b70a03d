"""The workdir, which the run may own: links and pipes in it do not mislead the worker."""

import os
import subprocess
from pathlib import Path

import pytest

from agents_app.launch import workdir as workdirs
from agents_app.launch.workdir import (
    SpareDirectories,
    add_file,
    make_workdir,
    remove_workdir,
    remove_workdirs,
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
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    (workdir / ".credentials").symlink_to(chosen)
    with pytest.raises(OSError):
        write_secret(workdir, "key", "canary")
    assert list(chosen.iterdir()) == []


def test_a_secret_is_for_its_owner_only_and_can_be_written_again(workdir):
    assert write_secret(workdir, "key", "old").stat().st_mode & 0o777 == 0o400
    assert write_secret(workdir, "key", "new").read_text() == "new"


def test_files_added_later_belong_to_the_owner_of_the_workdir(workdir):
    if os.geteuid() != 0:
        missing("leave to give files away", "run the tests as root")
    os.chown(workdir, 4711, 4712)
    for path in (add_file(workdir, "script.sh", "echo"), write_secret(workdir, "key", "canary")):
        assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)


# --- directories that later runs use --------------------------------------------------------

AGENT, OTHER = 71, 72


@pytest.fixture(autouse=True)
def spare(monkeypatch, tmp_path: Path) -> SpareDirectories:
    runs = tmp_path / "runs"
    runs.mkdir()
    monkeypatch.setattr(workdirs, "_RUNS", str(runs))
    monkeypatch.setattr(workdirs, "SPARE_DIRECTORIES", SpareDirectories(most=2))
    return workdirs.SPARE_DIRECTORIES


def _names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "runs").iterdir())


def test_the_next_run_of_the_agent_gets_the_directory_of_the_last_one_without_its_prompt(tmp_path):
    first, prompt = make_workdir(1, "first", AGENT)
    number = first.stat().st_ino
    remove_workdir(1, AGENT)
    assert not first.exists()
    assert [list(path.rglob("*.md")) for path in (tmp_path / "runs").iterdir()] == [[]]
    other, _ = make_workdir(2, "other", OTHER)
    assert other.stat().st_ino != number
    second, prompt = make_workdir(3, "second", AGENT)
    assert (second.stat().st_ino, prompt.read_text()) == (number, "second")
    assert sorted(path.name for path in second.iterdir()) == [".tmp", "prompt.md", "signals"]


@pytest.mark.parametrize(
    "left",
    [
        "echo x > file",
        "echo x > .tmp/file",
        "echo x > signals/status",
        "mkdir directory",
        "rmdir signals",
        "rmdir .tmp",
        "rmdir signals && ln -s /tmp signals",
        "chmod 755 .tmp",
        "chmod 750 .",
        "rm prompt.md && mkdir prompt.md",
    ],
)
def test_a_directory_that_a_run_has_changed_is_removed(tmp_path, left):
    made, _ = make_workdir(1, "first", AGENT)
    subprocess.run(["/bin/sh", "-c", left], cwd=made, check=True)
    remove_workdir(1, AGENT)
    assert _names(tmp_path) == []


def test_the_directory_of_another_user_is_removed(tmp_path):
    if os.geteuid() != 0:
        missing("leave to give files away", "run the tests as root")
    made, _ = make_workdir(1, "first", AGENT)
    os.chown(made, 4711, 4712)
    remove_workdir(1, AGENT)
    assert _names(tmp_path) == []


def test_a_directory_that_exists_already_is_used_as_it_is(tmp_path):
    """A worker that died may have created it."""
    make_workdir(1, "first", AGENT)
    remove_workdir(1, AGENT)
    existing, _ = make_workdir(2, "second", OTHER)
    (existing / "file").touch()
    again, prompt = make_workdir(2, "third", AGENT)
    assert (again, prompt.read_text()) == (existing, "third")
    assert _names(tmp_path) == ["2"]


def test_only_the_directories_that_were_used_last_are_kept(tmp_path):
    for agent in (1, 2, 3):
        make_workdir(agent, "", agent)
    for agent in (1, 2, 3):
        remove_workdir(agent, agent)
    assert len(_names(tmp_path)) == 2
    kept = _names(tmp_path)
    make_workdir(4, "", 1)
    assert {"4", *kept} == set(_names(tmp_path))
    make_workdir(5, "", 3)
    assert len(_names(tmp_path)) == 3


def test_a_worker_that_starts_removes_the_spare_directories_of_dead_workers(tmp_path):
    make_workdir(1, "", AGENT)
    remove_workdir(1, AGENT)
    dead = subprocess.Popen(["/bin/true"])
    dead.wait()
    for pid in (dead.pid, 1):
        (tmp_path / "runs" / f"spare-{pid}-1").mkdir()
    remove_workdirs([])
    # Those of this process are those of an earlier process with its number.
    assert _names(tmp_path) == ["spare-1-1"]
    made, _ = make_workdir(2, "", AGENT)
    assert made.is_dir()
