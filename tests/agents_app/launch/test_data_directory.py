"""A run as another user passes through the data directory and reads nothing in it."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.installation import create_private_database
from agents_app.launch import prepare, workdir
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, printed, shell
from tests.agents_app.fleet import Fleet
from tests.parts.users_part import Users, uid_of


@pytest.fixture
def data(users: Users, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private data directory in a place that other users can reach."""
    data = users.public_directory() / "data"
    conf = replace(CONF, data=data, database_url=f"sqlite:///{data}/drover.sqlite3")
    create_private_database(conf)
    monkeypatch.setattr(prepare, "CONF", conf)
    monkeypatch.setattr(workdir, "_RUNS", f"{data}/runs")
    prepare._state_dir.cache_clear()
    yield data
    prepare._state_dir.cache_clear()


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


def test_the_home_of_an_agent_follows_no_link_of_its_runs(data: Path, users: Users, monkeypatch):
    """The user of the runs owns the directory and may replace the home at any time."""
    victim = users.public_directory()
    state = data / "state" / "7"
    state.mkdir(parents=True)
    os.chown(state, uid_of(users.agent), -1)
    create = prepare.create_private_directory

    def create_too_late(path: Path) -> None:
        if path == state / ".home":
            path.symlink_to(victim)
        create(path)

    monkeypatch.setattr(prepare, "create_private_directory", create_too_late)
    assert prepare._state_dir(7) == state
    assert victim.stat().st_uid == 0
    prepare._state_dir.cache_clear()
    (state / ".home").unlink()
    (state / ".home").symlink_to(data / "nothing")
    assert prepare._state_dir(7) == state


def test_an_agent_that_runs_as_root_again_gets_its_state_back(
    fleet: Fleet, host: Host, data: Path, users: Users
):
    script = 'cat "$DROVER_STATE_DIR/kept"; echo x >"$DROVER_STATE_DIR/kept" && id -u'
    other = {"type": "host-user", "run_as": users.agent, "sandbox": {}}
    agent = fleet.agent(command=shell(script), runtime=other)
    assert printed(do(fleet, host, agent).pk) == f"{uid_of(users.agent)}\n"
    agent.runtime, agent.revision = {"sandbox": {}}, agent.revision + 1
    agent.save()
    run = do(fleet, host, agent)
    assert printed(run.pk) == "x\n0\n", printed(run.pk, stream=2)
