"""The projects of all tenants are watched; a broken, slow or huge one delays no other."""

import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents_app.accounts import change_project, tenants
from agents_app.models import Agent, Tenant
from agents_app.project import sync, watch, watch_all
from agents_app.project.watch_all import ProjectWatcher
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.project_files import Project
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watcher(durable_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectWatcher]:
    made = ProjectWatcher(lambda: datetime.now(UTC))
    monkeypatch.setattr(watch_all, "SLOW_SECONDS", 0.5)
    yield made
    made.close()
    for one in list(made.watches.values()):
        one.thread.join(10)
        assert not one.thread.is_alive()


class Blocked:
    """Reading one project blocks until the test ends."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.may_end = threading.Event(), threading.Event()
        read = sync.read_project

        def blocks(path: Path, *others: object) -> object:
            if path == project:
                self.entered.set()
                assert self.may_end.wait(60)
            return read(path, *others)  # type: ignore[arg-type]

        monkeypatch.setattr(sync, "read_project", blocks)


def tenant_with_project(name: str, tmp_path: Path) -> tuple[Tenant, Project]:
    project = Project(tmp_path / name)
    return tenants.create_tenant(name, "ann", NOON, str(project.root))[0], project


def has_agent(tenant: str, name: str) -> bool:
    rows = Agent.objects.filter(tenant__name=tenant, name=name, removed_at__isnull=True)
    return rows.exists()


def errors_of(name: str) -> list[str]:
    return list(Tenant.objects.get(name=name).definition_errors)


def test_a_project_that_blocks_delays_no_other_and_is_reported_with_its_tenant(
    watcher: ProjectWatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _, slow = tenant_with_project("aaa", tmp_path)
    _, quick = tenant_with_project("bbb", tmp_path)
    slow.agent("late")
    quick.agent("first")
    blocked = Blocked(slow.root, monkeypatch)
    try:
        watcher.look()
        assert blocked.entered.wait(10)
        wait_for(lambda: has_agent("bbb", "first"), 5)
        time.sleep(0.5)  # the watch itself begins a moment after the first reading
        quick.agent("second")
        wait_for(lambda: has_agent("bbb", "second"), 5)
        time.sleep(0.6)
        watcher.look()
        (error,) = errors_of("aaa")
        assert "is not read yet after" in error
        assert (errors_of("bbb"), has_agent("aaa", "late")) == ([], False)
    finally:
        blocked.may_end.set()
    wait_for(lambda: has_agent("aaa", "late"), 5)
    wait_for(lambda: errors_of("aaa") == [], 5)


def test_fifos_in_the_place_of_files_are_errors_and_do_not_block(
    watcher: ProjectWatcher, tmp_path: Path
):
    _, project = tenant_with_project("acme", tmp_path)
    project.agent("fine")
    os.mkfifo(project.agent("pipe") / "config.toml")
    os.mkfifo(project.root / "config.toml")
    watcher.look()
    wait_for(lambda: len(errors_of("acme")) == 2, 5)
    assert all("is a FIFO" in error for error in errors_of("acme"))


def test_a_project_of_a_thousand_agents_delays_no_other(watcher: ProjectWatcher, tmp_path: Path):
    _, huge = tenant_with_project("aaa", tmp_path)
    _, small = tenant_with_project("bbb", tmp_path)
    for number in range(1000):
        huge.agent(f"agent-{number}")
    small.agent("first")
    watcher.look()
    began = time.monotonic()
    wait_for(lambda: has_agent("bbb", "first"), 5)
    # Both were being read at the same time.
    assert Agent.objects.filter(tenant__name="aaa").count() < 1000
    assert time.monotonic() - began < 5
    Tenant.objects.filter(name="aaa").update(disabled_at=NOON)
    thread = watcher.watches["aaa", huge.root].thread
    watcher.look()
    thread.join(60)
    assert not thread.is_alive()


def test_an_error_while_a_project_is_read_is_stored_with_its_tenant(
    watcher: ProjectWatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _, project = tenant_with_project("acme", tmp_path)
    read = sync.read_project

    def breaks(path: Path, *others: object) -> object:
        if path == project.root:
            raise ValueError("no")
        return read(path, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(sync, "read_project", breaks)
    watcher.look()
    wait_for(lambda: errors_of("acme") == [f"{project.root} could not be read: ValueError: no"], 5)


def test_new_changed_disabled_and_deleted_tenants_are_noticed(
    watcher: ProjectWatcher, tmp_path: Path
):
    watcher.look()
    assert [name for name, _ in watcher.watches] == ["default"]
    tenant, project = tenant_with_project("acme", tmp_path)
    project.agent("first")
    watcher.look()
    wait_for(lambda: has_agent("acme", "first"), 5)
    other = Project(tmp_path / "other")
    other.agent("second")
    change_project(tenant, str(other.root), "ann", NOON)
    watcher.look()
    wait_for(lambda: has_agent("acme", "second") and not has_agent("acme", "first"), 5)
    watch = watcher.watches["acme", other.root]
    tenants.disable_tenant(tenant, "ann", NOON)
    watcher.look()
    assert [name for name, _ in watcher.watches] == ["default"]
    watch.thread.join(10)
    assert not watch.thread.is_alive()


def test_a_project_with_many_directories_is_read_every_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To watch it would use up the watches of the host."""
    for number in range(5):
        (tmp_path / f"d{number}").mkdir()
    assert watch.has_more_directories(tmp_path, 5)
    assert not watch.has_more_directories(tmp_path, 6)
    monkeypatch.setattr(watch, "RESCAN_MILLISECONDS", 50)
    monkeypatch.setattr(watch, "watch", lambda *_, **__: pytest.fail("watched"))
    calls, stop = list[float](), threading.Event()

    def changed() -> None:
        calls.append(time.monotonic())
        if len(calls) == 3:
            stop.set()

    watch.watch_project(tmp_path, changed, stop, most_directories=5)
    assert len(calls) == 3
