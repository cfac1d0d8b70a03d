"""A saved file takes effect within two seconds, whatever the watcher was called with before."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_app.project.watch import watch_project
from tests.parts.waiting import wait_for


class Watched:
    def __init__(self, root: Path, *files: Path) -> None:
        self.root = root
        self.files = files
        self.calls: list[float] = []
        self.fail = False
        self.stop = threading.Event()
        self.thread = threading.Thread(
            target=watch_project, args=(root, self._changed, self.stop), daemon=True
        )
        self.thread.start()
        wait_for(lambda: self.calls, 5)
        time.sleep(0.3)  # the watch itself begins a moment after the first call

    def _changed(self) -> tuple[Path, ...]:
        self.calls.append(time.monotonic())
        if self.fail:
            raise ValueError("the project does not parse")
        return self.files

    def seen_within(self, seconds: float, change) -> bool:
        before, began = len(self.calls), time.monotonic()
        change()
        wait_for(lambda: len(self.calls) > before, seconds, f"not seen after {seconds:g} s")
        return self.calls[-1] - began < seconds


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    (tmp_path / "agents" / "a").mkdir(parents=True)
    (tmp_path / "agents" / "a" / "SKILL.md").write_text("old")
    it = Watched(tmp_path)
    yield it
    it.stop.set()
    it.thread.join(5)
    assert not it.thread.is_alive()


def test_a_project_is_read_when_the_watch_begins(watched: Watched):
    assert len(watched.calls) >= 1


def test_a_file_saved_while_the_project_is_read_for_the_first_time_is_seen(tmp_path: Path):
    reads: list[bool] = []
    stop = threading.Event()

    def changed() -> None:
        reads.append((tmp_path / "SKILL.md").exists())
        (tmp_path / "SKILL.md").write_text("saved after the directory was listed")

    thread = threading.Thread(target=watch_project, args=(tmp_path, changed, stop), daemon=True)
    thread.start()
    try:
        wait_for(lambda: reads[:2] == [False, True], 5)
    finally:
        stop.set()
        thread.join(5)


def test_a_changed_new_or_removed_file_is_seen_within_two_seconds(watched: Watched):
    skill = watched.root / "agents" / "a" / "SKILL.md"
    assert watched.seen_within(2, lambda: skill.write_text("new"))
    new = watched.root / "agents" / "b"
    new.mkdir()
    assert watched.seen_within(2, lambda: (new / "SKILL.md").write_text("b"))
    assert watched.seen_within(2, skill.unlink)


def test_a_file_that_an_editor_replaces_is_seen(watched: Watched):
    skill = watched.root / "agents" / "a" / "SKILL.md"
    draft = skill.with_name(".SKILL.md.draft")
    draft.write_text("new")
    time.sleep(0.5)
    assert watched.seen_within(2, lambda: draft.replace(skill))


def test_a_project_that_cannot_be_read_is_read_again_after_the_next_change(
    watched: Watched, caplog
):
    skill = watched.root / "agents" / "a" / "SKILL.md"
    watched.fail = True
    assert watched.seen_within(2, lambda: skill.write_text("broken"))
    wait_for(lambda: any(r.msg["event"] == "project.sync_failed" for r in caplog.records), 2)
    watched.fail = False
    assert watched.seen_within(2, lambda: skill.write_text("mended"))


def test_a_file_that_was_read_is_seen_wherever_it_is(tmp_path: Path):
    """In a directory that is ignored otherwise, and outside of the project."""
    ignored = tmp_path / "project" / "node_modules" / "team" / "agent.yaml"
    outside = tmp_path / "home" / "office.toml"
    for path in (ignored, outside):
        path.parent.mkdir(parents=True)
        path.write_text("old")
    watched = Watched(tmp_path / "project", ignored, outside)
    try:
        assert watched.seen_within(2, lambda: ignored.write_text("new"))
        assert watched.seen_within(2, lambda: outside.write_text("new"))
        # Beside it are files of other programs.
        before = len(watched.calls)
        (outside.parent / "other.toml").write_text("x")
        time.sleep(0.6)
        assert len(watched.calls) == before
    finally:
        watched.stop.set()
        watched.thread.join(5)


@pytest.mark.django_db(transaction=True)
def test_a_new_agent_can_run_within_two_seconds_of_being_saved(tmp_path: Path):
    from agents_app.models import Agent
    from agents_app.project.sync import sync_project
    from tests.agents_app.fleet import NOON

    project, stop = tmp_path / "project", threading.Event()
    (project / "agents" / "a").mkdir(parents=True)

    def changed() -> None:
        sync_project(project, NOON)

    watching = threading.Thread(target=watch_project, args=(project, changed, stop), daemon=True)
    watching.start()
    time.sleep(0.5)
    skill = project / "agents" / "a" / "SKILL.md"
    skill.write_text("---\ncommand: 'true'\nscale: 2\n---\nWork.\n")
    wait_for(lambda: Agent.objects.filter(name="a", scale=2, revision=1).exists(), 2)
    skill.write_text("---\ncommand: 'true'\nscale: 3\n---\nWork.\n")
    wait_for(lambda: Agent.objects.filter(name="a", scale=3, revision=2).exists(), 2)
    stop.set()
    watching.join(5)
