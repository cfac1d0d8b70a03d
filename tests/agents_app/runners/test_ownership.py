"""change_owner: files that a run planted in its directory keep their owner."""

import os

import pytest

from agents_app.runners.ownership import change_owner
from tests.parts.users_part import Users, uid_of


def test_a_hard_link_to_a_file_outside_keeps_its_owner(users: Users):
    """F70. Guard: give whatever lies there, and a run that may make such links (not everywhere
    does the kernel refuse that) owns the file of another user from its next run on."""
    earlier, later = uid_of(users.worker), uid_of(users.agent)
    where = users.public_directory(users.worker)
    precious = users.public_directory() / "precious"
    precious.write_text("root's")
    os.link(precious, where / "planted")
    (where / "own").write_text("x")
    os.chown(where / "own", earlier, -1)
    os.link(where / "own", where / "twice")
    change_owner(where, later, later)
    owners = {path.name: path.stat().st_uid for path in (where, *where.iterdir())}
    assert owners == {where.name: later, "planted": 0, "own": later, "twice": later}


def test_a_file_replaced_during_the_change_keeps_its_owner(
    users: Users, monkeypatch: pytest.MonkeyPatch
):
    """F70. Guard: look at a name and then change the owner by that name, and this is red."""
    where = users.public_directory(users.worker)
    precious = users.public_directory() / "precious"
    precious.write_text("root's")
    (where / "own").write_text("x")
    os.chown(where / "own", uid_of(users.worker), -1)
    real = os.fstat

    def swap_after_the_look(file: int) -> os.stat_result:
        seen = real(file)
        (where / "own").unlink(missing_ok=True)
        os.link(precious, where / "own")
        return seen

    monkeypatch.setattr("agents_app.runners.ownership.os.fstat", swap_after_the_look)
    change_owner(where, uid_of(users.agent), -1)
    assert precious.stat().st_uid == 0
