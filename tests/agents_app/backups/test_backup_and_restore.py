"""A backup under running load, restored elsewhere; and every input that is refused."""

import json
import stat
import tarfile
from pathlib import Path

import pytest

from agents_app.backups.archive import MANIFEST
from agents_app.installation import hold_lock
from tests.faults.disks import small_disk
from tests.parts.fixtures import NewStack
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

PASSPHRASE = {"DROVER_BACKUP_PASSPHRASE": "correct horse battery"}
QUICK = "---\ndescription: x\ncommand: [sh, -c, 'date >>$DROVER_STATE_DIR/note']\nscale: 4\n---\n"
LONG = "---\ndescription: x\ncommand: [sleep, '300']\n---\n"
RUNS = "SELECT state, count(*) AS n FROM drover_run GROUP BY state"


def restore(stack: PrivateStack, file: Path, *options: str) -> str:
    """What is printed: the result, or the one line of the error."""
    done = stack.manage("restore", str(file), *options)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr
    return done.stdout or done.stderr


def manifest_of(file: Path) -> dict[str, dict[str, int]]:
    with tarfile.open(file) as tar:
        found = tar.extractfile(MANIFEST)
        assert found is not None
        return json.load(found)  # type: ignore[no-any-return]


def assert_recovers_alone(other: PrivateStack, stack: PrivateStack, pid: int) -> None:
    """The restored run is lost, and its process, of the running Drover, goes on."""
    other.write_agent("quick", QUICK)
    other.write_agent("long", LONG)
    other.up()
    other.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'lost'")
    assert stack.rows("SELECT 1 FROM drover_run WHERE state = 'running' AND pid = ?", pid)
    twice = "SELECT 1 FROM drover_firing GROUP BY schedule_id, due_at HAVING count(*) > 1"
    assert other.rows(twice) == []
    findings = json.loads(other.manage("doctor", "--invariants", "--json").stdout)["findings"]
    assert [one["verdict"] for one in findings if one["check"] == "invariants"] == ["ok"]


@pytest.mark.slow
def test_a_backup_under_load_is_restored_elsewhere_with_all_rows(
    new_stack: NewStack, tmp_path: Path
):
    stack = new_stack(**PASSPHRASE)
    stack.write_agent("quick", QUICK)
    stack.write_agent("long", LONG)
    stack.up()
    stack.manage("schedule", "create", "quick", "every 1 second", "--name", "often")
    stack.manage("run", "long")
    stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'running' AND pid IS NOT NULL")
    ended = "SELECT count(*) AS n FROM drover_run WHERE state = 'succeeded'"
    wait_for(lambda: stack.rows(ended)[0]["n"] >= 3, 30)
    file = tmp_path / "drover.backup"
    done = stack.manage("backup", str(file))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # Its Drover still runs, and refuses to be replaced.
    assert "already runs" in restore(stack, file, "--force")
    (long_run,) = stack.rows(
        "SELECT r.pid FROM drover_run r JOIN drover_agent a ON a.id = r.agent_id "
        "WHERE a.name = 'long' AND r.state = 'running'"
    )

    other = new_stack(**PASSPHRASE)
    assert "restored" in restore(other, file)
    counts = manifest_of(file)["counts"]
    assert counts["drover_run"] >= 4
    for table, count in counts.items():
        (row,) = other.rows(f"SELECT count(*) AS n FROM {table}")
        assert row["n"] == count, table
    notes = [path.read_text() for path in (other.data / "state").glob("*/**/note")]
    assert (
        notes and (other.data / "secret_key").read_text() == (stack.data / "secret_key").read_text()
    )

    assert_recovers_alone(other, stack, long_run["pid"])


def test_what_cannot_be_restored_is_refused_and_changes_nothing(
    new_stack: NewStack, tmp_path: Path, on_postgres: bool
):
    stack = new_stack(**PASSPHRASE)
    (stack.data / "state" / "1").mkdir(parents=True)
    (stack.data / "state" / "1" / "note").write_text("kept")
    file = tmp_path / "drover.backup"
    assert stack.manage("backup", str(file)).returncode == 0
    assert "exists: choose another name" in stack.manage("backup", str(file)).stderr
    before = content(stack)
    assert "is not empty" in restore(stack, file)
    half = tmp_path / "half"
    half.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert "incomplete" in restore(stack, half, "--force")
    assert "is not a file" in restore(stack, tmp_path / "none", "--force")
    with hold_lock(stack.data):
        assert "already runs" in restore(stack, file, "--force")
    wrong = tmp_path / "wrong"
    wrong.write_text("another passphrase\n")
    refused = restore(stack, file, "--force", "--passphrase-file", str(wrong))
    assert "does not open the keys" in refused
    newer = changed(file, tmp_path / "newer", lambda m: m["schema"].append("9999_newer"))
    assert "newer than this version" in restore(stack, newer, "--force")
    engine, member = ("sqlite", "sqlite3") if on_postgres else ("postgresql", "dump")
    assert "move_to_postgres" in restore(
        stack, of_engine(file, tmp_path, engine, member), "--force"
    )
    stack.rows(
        "INSERT INTO drover_worker (name, host, boot_id, pid, pid_started, concurrency, state, "
        "started_at, lease_until) VALUES ('w', 'h', 'b', 1, 0, 1, 'running', '2026-01-01', "
        "'2999-01-01')"
    )
    assert "worker w uses this database" in restore(stack, file, "--force")
    stack.rows("DELETE FROM drover_worker")
    assert content(stack) == before
    assert "replaced files are in" in restore(stack, file, "--force")
    assert content(stack) == before


def test_a_full_disk_is_one_message_and_leaves_no_backup(
    new_stack: NewStack, tmp_path: Path
) -> None:
    stack = new_stack(**PASSPHRASE)
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", 64 * 1024) as disk:
        done = stack.manage("backup", str(disk / "drover.backup"))
        assert list(disk.iterdir()) == []
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "no backup was made" in done.stderr or "pg_dump failed" in done.stderr


def test_a_database_that_cannot_be_read_is_one_message_and_leaves_no_backup(
    new_stack: NewStack, tmp_path: Path, on_postgres: bool
) -> None:
    stack = new_stack(**PASSPHRASE)
    if on_postgres:
        stack.env["DATABASE_URL"] = "postgresql://drover@127.0.0.1:1/none"
    else:
        (stack.data / "drover.sqlite3").write_bytes(b"no database" * 1000)
    done = stack.manage("backup", str(tmp_path / "drover.backup"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "no backup was made" in done.stderr
    assert not (tmp_path / "drover.backup").exists()


def content(stack: PrivateStack) -> dict[str, object]:
    files = {name: (stack.data / name).read_text() for name in ("secret_key", "state/1/note")}
    return {**files, "tables": stack.rows("SELECT app, name FROM django_migrations ORDER BY id")}


def changed(file: Path, target: Path, change) -> Path:  # type: ignore[no-untyped-def]
    """A copy of the backup with another manifest."""
    directory = target.with_suffix(".dir")
    directory.mkdir()
    with tarfile.open(file) as tar:
        tar.extractall(directory, filter="data")
    manifest = json.loads((directory / MANIFEST).read_text())
    change(manifest)
    (directory / MANIFEST).write_text(json.dumps(manifest))
    with tarfile.open(target, "w") as tar:
        for path in directory.iterdir():
            tar.add(path, path.name)
    return target


def of_engine(file: Path, directory: Path, engine: str, ending: str) -> Path:
    def rename(manifest: dict[str, object]) -> None:
        members = manifest["members"]
        assert isinstance(members, dict)
        (old,) = [name for name in members if name.startswith("database")]
        members[f"database.{ending}"] = members.pop(old)
        manifest["engine"] = engine
        (directory / "engine.dir" / old).rename(directory / "engine.dir" / f"database.{ending}")

    return changed(file, directory / "engine", rename)
