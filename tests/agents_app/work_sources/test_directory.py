"""A directory as a work source: files move by renaming, from the schedule to the finished run."""

import os
from pathlib import Path

import pytest

from agents_app.models import Firing, WorkClaim
from agents_app.work_sources.kinds import ClaimMark, FetchOptions, SourceAccess
from agents_app.work_sources.kinds.contract import ItemReport
from agents_app.work_sources.kinds.directory import DirectorySettings, FileDirectory
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import printed, shell
from tests.agents_app.fleet import NOON, Fleet, at, live_run
from tests.agents_app.work_sources.polling import (
    claim_rows,
    decided,
    directory_source,
    finish,
    fire_and_poll,
    poll,
    scheduled,
    work_of,
)

TOKENS = ("a" * 32, "b" * 32)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work" / "todo").mkdir(parents=True)
    return tmp_path / "work"


def put(root: Path, name: str, text: str = "do it", age: int = 0) -> None:
    path = root / "todo" / name
    path.write_text(text)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def files(root: Path) -> dict[str, list[str]]:
    folders = sorted(folder for folder in root.iterdir() if any(folder.iterdir()))
    return {folder.name: sorted(path.name for path in folder.iterdir()) for folder in folders}


def client(root: Path) -> FileDirectory:
    access = SourceAccess(send=lambda *_: pytest.fail("no requests"), now=lambda: NOON)
    return FileDirectory(DirectorySettings(path=str(root)), access)


def mark(token: str) -> ClaimMark:
    return ClaimMark(token=token, since=NOON)


# --- files ------------------------------------------------------------------------------------


def test_the_oldest_file_is_first_and_others_than_files_are_left_alone(root):
    put(root, "new.md", age=1)
    put(root, "old.md", age=100)
    put(root, ".hidden", age=200)
    (root / "todo" / "folder").mkdir()
    (root / "todo" / "link").symlink_to(root / "todo" / "new.md")
    found = client(root).fetch(FetchOptions()).candidates
    assert [each.title for each in found] == ["old.md", "new.md"]


def test_of_two_claims_on_one_file_one_succeeds(root):
    put(root, "a.md", "the text")
    first, second = client(root), client(root)
    assert first.claim("file-a.md", TOKENS[0]).success
    assert second.claim("file-a.md", TOKENS[1]).reason == "already_claimed"
    details = first.confirm("file-a.md", mark(TOKENS[0])).details
    assert details is not None
    assert details.body == "the text"
    assert files(root) == {"doing": ["a.aaaaaaaa.md"]}


def test_a_claim_that_is_repeated_finds_its_own_file(root):
    put(root, "a.md")
    source = client(root)
    assert source.claim("file-a.md", TOKENS[0]).success
    assert source.claim("file-a.md", TOKENS[0], again=True).success
    assert not source.claim("file-a.md", TOKENS[1], again=True).success


def test_a_file_of_the_same_name_is_never_overwritten(root):
    source = client(root)
    for token in TOKENS:
        put(root, "a.md", token)
        assert source.claim("file-a.md", token).success
    for token in TOKENS:
        report = ItemReport(mark=mark(token), outcome="failure", text="why")
        source.complete("file-a.md", report)
    assert {(root / "failed" / name).read_text()[:32] for name in ("a.md", "a.bbbbbbbb.md")} == {
        *TOKENS
    }


@pytest.mark.parametrize("item", ["file-../x", "file-", "file-..", "x", "file-a/b"])
def test_an_id_that_leads_out_of_the_directory_is_refused(root, item):
    with pytest.raises(Exception, match="not the id of a file"):
        client(root).claim(item, TOKENS[0])


def test_a_link_that_replaces_a_claimed_file_is_not_read(root):
    put(root, "a.md")
    source = client(root)
    assert source.claim("file-a.md", TOKENS[0]).success
    doing = root / "doing" / "a.aaaaaaaa.md"
    doing.unlink()
    doing.symlink_to("/etc/hostname")
    assert source.confirm("file-a.md", mark(TOKENS[0])).reason == "not_found"


# --- from the schedule to the finished run -----------------------------------------------------


def test_a_file_becomes_the_context_of_a_run_and_ends_in_done(fleet: Fleet, host: Host, root: Path):
    put(root, "a.md", "please count the sheep")
    command = shell("grep -o 'count the sheep'")
    schedule = scheduled(fleet, directory_source(root), command=command)
    firing = fire_and_poll(fleet, schedule)
    assert decided(firing) == ("started", "")
    assert files(root) == {"doing": [f"a.{WorkClaim.objects.get().token[:8]}.md"]}
    run = live_run(work_of(firing))
    assert execute.execute(run.pk, host) == 1
    assert printed(run.pk) == "count the sheep\n"
    poll()
    assert files(root) == {"done": ["a.md", "a.md.result.md"]}
    text = (root / "done" / "a.md.result.md").read_text()
    assert "Done by the Drover agent `reporter`" in text
    assert f"https://drover.test/admin/runs/{run.pk}/" in text
    assert claim_rows() == [("file-a.md", "ended", "succeeded")]


def test_a_poll_that_finds_nothing_is_a_firing_and_starts_nothing(fleet: Fleet, root: Path):
    schedule = scheduled(fleet, directory_source(root))
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "no_work")
    schedule.refresh_from_db()
    assert schedule.skipped_count == 1
    assert not schedule.agent.work_items.exists()


def test_a_missing_directory_is_an_error_of_the_source(fleet: Fleet, tmp_path: Path):
    schedule = scheduled(fleet, directory_source(tmp_path / "nowhere"))
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "source_failed")
    assert "create it" in fleet.tenant.work_sources.get().last_error


def test_a_failed_file_ends_in_failed_with_the_reason(fleet: Fleet, root: Path):
    put(root, "a.md")
    schedule = scheduled(fleet, directory_source(root))
    finish(fleet, fire_and_poll(fleet, schedule), "failed", error="exit code 1")
    assert files(root) == {"failed": ["a.md", "a.md.result.md"]}
    assert "exit code 1" in (root / "failed" / "a.md.result.md").read_text()


def test_a_stopped_run_puts_its_file_back(fleet: Fleet, root: Path):
    put(root, "a.md")
    schedule = scheduled(fleet, directory_source(root))
    finish(fleet, fire_and_poll(fleet, schedule), "stopped", error="stopped by ann")
    assert files(root) == {"todo": ["a.md"]}
    assert claim_rows() == [("file-a.md", "ended", "released")]
    assert decided(fire_and_poll(fleet, schedule, at(60))) == ("started", "")


def test_a_firing_without_a_free_slot_claims_nothing(fleet: Fleet, root: Path):
    put(root, "a.md")
    schedule = scheduled(fleet, directory_source(root))
    schedule.overlap = "queue"
    schedule.save()
    fleet.start(fleet.enqueue(schedule.agent))
    assert decided(fire_and_poll(fleet, schedule)) == ("skipped", "at_capacity")
    assert files(root) == {"todo": ["a.md"]}


def test_the_source_of_a_schedule_wins_over_that_of_its_agent(
    fleet: Fleet, root: Path, tmp_path: Path
):
    put(root, "a.md")
    schedule = scheduled(fleet, directory_source(tmp_path / "of-the-agent"))
    schedule.work_source = directory_source(root)
    schedule.save()
    assert decided(fire_and_poll(fleet, schedule)) == ("started", "")


def test_a_source_that_was_removed_meanwhile_leaves_no_firing_behind(fleet: Fleet, root: Path):
    schedule = scheduled(fleet, directory_source(root))
    firing = fleet.fire(schedule)
    assert firing.outcome == "polling"
    schedule.agent.work_source = None
    schedule.agent.save()
    poll()
    firing.refresh_from_db()
    assert decided(firing) == ("skipped", "no_work")


def test_a_canceled_firing_puts_its_file_back(fleet: Fleet, root: Path, monkeypatch):
    """The schedule is canceled between the claim and the start."""
    put(root, "a.md")
    schedule = scheduled(fleet, directory_source(root))
    confirm = FileDirectory.confirm

    def canceled(self, item_id, given):
        Firing.objects.update(outcome="skipped", reason="disabled")
        return confirm(self, item_id, given)

    monkeypatch.setattr(FileDirectory, "confirm", canceled)
    fire_and_poll(fleet, schedule)
    poll()
    assert files(root) == {"todo": ["a.md"]}
    assert not schedule.agent.work_items.exists()
