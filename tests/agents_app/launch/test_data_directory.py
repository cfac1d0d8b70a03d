"""A run as another user passes through the data directory and reads nothing in it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.installation import create_private_database
from agents_app.launch import prepare, workdir
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import Fleet
from tests.parts.users_part import Users


@pytest.fixture
def data(users: Users, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private data directory in a place that other users can reach."""
    data = users.public_directory() / "data"
    conf = replace(CONF, data=data, database_url=f"sqlite:///{data}/drover.sqlite3")
    create_private_database(conf)
    monkeypatch.setattr(prepare, "CONF", conf)
    monkeypatch.setattr(workdir, "_RUNS", f"{data}/runs")
    return data


def test_a_run_as_another_user_reaches_its_files_and_not_the_database(
    fleet: Fleet, host: Host, data: Path, users: Users
):
    before = os.umask(0o077)
    script = f"pwd; cat prompt.md >/dev/null && ls {data} {data}/runs; cat {data}/drover.sqlite3"
    runtime = {"type": "host-user", "run_as": users.agent}
    try:
        run = do(fleet, host, fleet.agent(command=shell(script), runtime=runtime))
    finally:
        os.umask(before)
    assert printed(run.pk) == f"{data}/runs/{run.pk}\n"
    refused = printed(run.pk, stream=2)
    assert refused.count("Permission denied") == 3, refused
    assert data.stat().st_mode & 0o777 == 0o711


def test_a_run_as_the_user_of_drover_opens_the_data_directory_to_no_one(
    fleet: Fleet, host: Host, data: Path
):
    assert printed(do(fleet, host, fleet.agent(command=shell("pwd"))).pk)
    assert data.stat().st_mode & 0o777 == 0o700
