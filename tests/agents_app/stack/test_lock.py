"""One `up` per data directory, also after a killed `up` whose processes are still closing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents_app.errors import ConfigError, Refused
from agents_app.installation import up_lock
from tests.agents_app.stack.toys import ROOT
from tests.parts.processes import stop_process
from tests.parts.waiting import wait_for

# Takes the lock, starts a child that inherits it, and prints both process ids.
HOLDER = """
import subprocess, sys, time
from pathlib import Path
from agents_app.installation.up_lock import hold_lock
with hold_lock(Path(sys.argv[1])) as fd:
    child = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=(fd,))
    print(child.pid, flush=True)
    time.sleep(60)
"""


def hold(data: Path, child_seconds: float = 60) -> tuple[subprocess.Popen[bytes], int]:
    argv = [sys.executable, "-c", HOLDER, str(data), str(child_seconds)]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_second_up_is_refused_with_the_process_id_of_the_first(tmp_path: Path) -> None:
    holder, child = hold(tmp_path)
    try:
        with pytest.raises(Refused, match=f"already runs .* as process {holder.pid}"):
            up_lock.hold_lock(tmp_path).__enter__()
        assert up_lock.running_up(tmp_path) == holder.pid
    finally:
        stop_process(holder)
        os.kill(child, 9)


def test_the_lock_is_free_after_its_release(tmp_path: Path) -> None:
    with up_lock.hold_lock(tmp_path):
        assert up_lock.lock_path(tmp_path).read_text() == f"{os.getpid()}\n"
    assert up_lock.running_up(tmp_path) is None
    with up_lock.hold_lock(tmp_path):
        pass


def test_the_lock_of_another_user_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with up_lock.hold_lock(tmp_path):
        monkeypatch.setattr(up_lock.os, "open", refuse)
        assert not up_lock.drain_up(tmp_path)


def test_the_lock_waits_for_the_processes_of_a_killed_up(tmp_path: Path) -> None:
    holder, _child = hold(tmp_path, child_seconds=1)
    holder.kill()
    holder.wait()
    started = time.monotonic()
    assert up_lock.running_up(tmp_path) is None
    with up_lock.hold_lock(tmp_path):
        assert 0.3 < time.monotonic() - started < 3


def test_processes_that_do_not_end_in_time_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up_lock, "_CLOSING_SECONDS", 0.2)
    holder, child = hold(tmp_path)
    holder.kill()
    holder.wait()
    try:
        with pytest.raises(Refused, match="have not ended yet"):
            up_lock.hold_lock(tmp_path).__enter__()
    finally:
        os.kill(child, 9)


def test_a_stale_lock_file_names_no_process(tmp_path: Path) -> None:
    up_lock.lock_path(tmp_path).write_text(f"{os.getpid()}\n")
    assert up_lock.running_up(tmp_path) is None
    assert up_lock.running_up(tmp_path / "nothing") is None


def test_a_data_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot write to the data directory .*DROVER_DATA"):
        up_lock.hold_lock(tmp_path / "missing").__enter__()


def test_the_holder_can_be_read_while_the_lock_is_held(tmp_path: Path) -> None:
    """Reading takes a shared lock briefly, which must not make a starting `up` fail."""
    with up_lock.hold_lock(tmp_path):
        wait_for(lambda: up_lock.running_up(tmp_path) == os.getpid(), 1)
