"""Files and directories that only this user may read."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents_app.errors import ConfigError
from agents_app.installation.private_files import (
    create_private_directory,
    create_private_file,
    open_private_file,
    private_directory,
    read_or_create_private,
    read_or_create_secret,
    write_private,
)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def _umask_of_zero():
    """The mode of a file must not depend on the umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_only_this_user_can_read_the_files_of_all_functions(tmp_path: Path):
    os.close(create_private_file(tmp_path / "created"))
    os.close(open_private_file(tmp_path / "opened"))
    write_private(tmp_path / "written", "text")
    read_or_create_private(tmp_path / "kept", "text")
    read_or_create_secret(tmp_path / "secret")
    assert {path.name: mode(path) for path in tmp_path.iterdir()} == dict.fromkeys(
        ("created", "opened", "written", "kept", "secret"), 0o600
    )


def test_a_new_file_is_never_created_over_a_file_or_through_a_link(tmp_path: Path):
    (tmp_path / "file").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            create_private_file(tmp_path / name)
    assert (tmp_path / "file").read_text() == "theirs"
    assert not (tmp_path / "target").exists()


def test_a_new_file_can_be_created_below_an_open_directory_with_another_mode(tmp_path: Path):
    directory = os.open(tmp_path, os.O_RDONLY)
    os.close(create_private_file("name", 0o400, directory))
    os.close(directory)
    assert mode(tmp_path / "name") == 0o400


def test_a_file_is_replaced_and_no_draft_stays(tmp_path: Path):
    path = tmp_path / "file"
    (tmp_path / f".file.{os.getpid()}").write_text("left behind")
    write_private(path, "old")
    write_private(path, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "new")]


def test_an_existing_file_keeps_its_first_text(tmp_path: Path):
    path = tmp_path / "below" / "file"
    assert read_or_create_private(path, "first") == "first"
    assert read_or_create_private(path, "second") == "first"


def test_processes_that_create_a_file_concurrently_read_the_same_text(tmp_path: Path):
    path = tmp_path / "file"

    def create(number: int) -> str:
        child = os.fork()
        if child == 0:
            read_or_create_private(path, str(number))
            os._exit(0)
        os.waitpid(child, 0)
        return path.read_text()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(create, range(8)))) == 1


def test_a_private_directory_is_created_with_its_parents_and_an_existing_one_is_not_changed(
    tmp_path: Path,
):
    path = tmp_path / "new" / "below"
    create_private_directory(path)
    assert mode(path) == 0o700
    path.chmod(0o750)
    create_private_directory(path)
    assert mode(path) == 0o750


def test_the_mode_of_an_existing_directory_of_this_user_is_corrected(tmp_path: Path):
    path = tmp_path / "directory"
    path.mkdir(0o777)
    assert mode(private_directory(path)) == 0o700
    assert mode(private_directory(path, 0o711)) == 0o711


def test_a_link_in_the_place_of_a_private_directory_is_refused(tmp_path: Path):
    assert mode(private_directory(tmp_path / "new" / "below")) == 0o700
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="link must be a directory"):
        private_directory(tmp_path / "link")
