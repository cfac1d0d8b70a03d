"""Directories that change hands: what a run planted in them does not change hands with them."""

import os

import pytest

from agents_app.runners.giving import give
from tests.parts.users_part import Users, uid_of


def test_a_second_name_of_a_file_outside_is_not_given_with_the_directory(users: Users):
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
    give(where, later, later)
    owners = {path.name: path.stat().st_uid for path in (where, *where.iterdir())}
    assert owners == {where.name: later, "planted": 0, "own": later, "twice": later}


def test_a_file_that_is_swapped_while_a_directory_is_given_is_not_given_in_its_place(
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

    monkeypatch.setattr("agents_app.runners.giving.os.fstat", swap_after_the_look)
    give(where, uid_of(users.agent), -1)
    assert precious.stat().st_uid == 0
