"""The file of a backup: sealed keys, safe extraction, and files that were changed or cut off."""

import io
import json
import os
import socket
import stat
import tarfile
from pathlib import Path

import pytest

from agents_app.backups.archive import (
    FORMAT,
    BackupManifest,
    digest_of,
    extract_archive,
    write_archive,
)
from agents_app.backups.sealing import seal, unseal
from agents_app.backups.state import pack_state, unpack_state
from agents_app.errors import Refused

MEMBERS = ("database.sqlite3", "keys.sealed", "state.tar")


def archive_in(directory: Path, **changes: object) -> Path:
    staging = directory / "staging"
    staging.mkdir()
    for name in MEMBERS:
        (staging / name).write_text(f"content of {name}" * 1000)
    values = {
        "format": FORMAT,
        "drover_version": "1",
        "created_at": "now",
        "engine": "sqlite",
        "schema": [],
        "counts": {},
        "state_files": 0,
        "members": {name: digest_of(staging / name) for name in MEMBERS},
    }
    write_archive(staging, BackupManifest(**values | changes), directory / "file")  # type: ignore[arg-type]
    return directory / "file"


def test_sealed_keys_open_only_with_their_passphrase():
    sealed = seal({"secret_key": "value"}, "a long passphrase")
    assert b"value" not in sealed
    assert unseal(sealed, "a long passphrase") == {"secret_key": "value"}
    with pytest.raises(Refused, match="does not open the keys"):
        unseal(sealed, "another passphrase")
    with pytest.raises(Refused, match="too short"):
        seal({}, "short")


def test_a_written_archive_is_private_and_has_all_members(tmp_path: Path):
    file = archive_in(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "out").mkdir()
    assert extract_archive(file, tmp_path / "out").members.keys() == set(MEMBERS)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_write_leaves_no_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        archive_in(tmp_path, members={"missing": ""})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["staging"]


@pytest.mark.parametrize("size", [0, 100, 5000, 40_000])
def test_a_half_written_archive_is_refused(tmp_path: Path, size: int):
    file = archive_in(tmp_path)
    os.truncate(file, size)
    with pytest.raises(Refused, match=r"incomplete|no backup"):
        extract_archive(file, tmp_path)


def test_an_altered_member_is_refused(tmp_path: Path):
    file = archive_in(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"content of state.tar", b"CONTENT of state.tar", 1))
    with pytest.raises(Refused, match=r"altered: state\.tar differs"):
        extract_archive(file, tmp_path)


def test_an_archive_of_another_format_is_refused(tmp_path: Path):
    with pytest.raises(Refused, match="has the format 99"):
        extract_archive(archive_in(tmp_path, format=99), tmp_path)


def test_a_manifest_that_names_other_members_is_refused(tmp_path: Path):
    file = tmp_path / "file"
    manifest = {"format": FORMAT, "drover_version": "", "created_at": "", "engine": "sqlite"}
    manifest |= {"schema": [], "counts": {}, "state_files": 0, "members": {"../outside": "x"}}
    with tarfile.open(file, "w") as tar:
        info = tarfile.TarInfo("manifest.json")
        text = json.dumps(manifest).encode()
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    with pytest.raises(Refused, match="does not name all members"):
        extract_archive(file, tmp_path)


# --- state directories ------------------------------------------------------------------------


def test_state_keeps_files_and_inner_links_and_leaves_out_what_cannot_be_restored(tmp_path: Path):
    state = tmp_path / "state"
    (state / "1" / "deep").mkdir(parents=True)
    (state / "1" / "deep" / "file").write_bytes(b"\0bytes")
    (state / "1" / "inner").symlink_to("deep/file")
    (state / "1" / "outer").symlink_to("/etc/passwd")
    (state / "1" / "above").symlink_to("../../../x")
    os.mkfifo(state / "1" / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(state / "1" / "socket"))
        _, left_out = pack_state(state, tmp_path / "state.tar")
    assert sorted(left_out) == ["1/above", "1/fifo", "1/outer", "1/socket"]
    unpack_state(tmp_path / "state.tar", tmp_path / "out")
    assert (tmp_path / "out" / "1" / "inner").read_bytes() == b"\0bytes"


def test_a_missing_state_directory_is_an_empty_one(tmp_path: Path):
    assert pack_state(tmp_path / "none", tmp_path / "state.tar") == (0, [])
    assert unpack_state(tmp_path / "state.tar", tmp_path / "out") == 0


@pytest.mark.parametrize(
    ("name", "link"), [("../escaped", ""), ("link", "/etc"), ("link", "../../outside")]
)
def test_members_that_lead_out_of_the_directory_are_refused(tmp_path: Path, name: str, link: str):
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        info = tarfile.TarInfo(name)
        if link:
            info.type, info.linkname = tarfile.SYMTYPE, link
        tar.addfile(info, io.BytesIO())
    with pytest.raises(tarfile.FilterError):
        unpack_state(tmp_path / "bad.tar", tmp_path / "out")
    assert not (tmp_path / "escaped").exists()
