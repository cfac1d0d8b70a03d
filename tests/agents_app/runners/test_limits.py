"""Limits of process runs, with real control groups where the host allows them."""

import os
import sys
from pathlib import Path

import pytest

from agents_app.runners import limits
from agents_app.runners.base import Limits, Runtime, verdict
from agents_app.runners.limits import find_hierarchy, group_settings
from tests.agents_app.runners.programs import Program
from tests.parts.missing import missing

EAT = "x = bytearray(200 << 20); print(len(x))"


@pytest.fixture
def controllers() -> set[str]:
    """Those that this host lets us use."""
    hierarchy = find_hierarchy()
    if hierarchy is None or not {"memory", "pids"} <= hierarchy.directories.keys():
        missing("a control group to write to", "run the tests as root, or set DROVER_CGROUP")
    return set(hierarchy.directories)


def groups_left() -> list[Path]:
    hierarchy = find_hierarchy()
    assert hierarchy is not None
    return [
        path
        for top in hierarchy.directories.values()
        for path in top.glob(f"drover-{os.getpid()}-*")
    ]


def run(tmp_path: Path, *argv: str, **runtime: object) -> Program:
    return Program(tmp_path, *argv, runtime=Runtime(**runtime)).run()  # type: ignore[arg-type]


@pytest.mark.fault("F39")
def test_a_run_that_takes_too_much_memory_reports_the_limit(tmp_path, controllers):
    program = run(tmp_path, sys.executable, "-c", EAT, memory="64m")
    ended = verdict(program.outcome)
    assert (ended.state, program.outcome.exit_code) == ("failed", -9)
    assert ended.error.startswith("oom_killed: the run took more than its `memory` allows")
    assert groups_left() == []


def test_a_run_that_stays_below_its_limit_does_not_notice_it(tmp_path, controllers):
    program = run(tmp_path, sys.executable, "-c", EAT, memory="1g", pids_limit=50)
    assert (program.outcome.exit_code, program.outcome.error) == (0, "")
    assert program.sink.text() == b"209715200\n"
    assert groups_left() == []


@pytest.mark.fault("F32")
def test_a_fork_bomb_of_root_reaches_its_limit(tmp_path, controllers):
    # So many that the limit holds long before the last one, also on a busy machine.
    script = "i=0; while [ $i -lt 3000 ]; do sleep 60 & i=$((i+1)); done; echo all of them"
    program = run(tmp_path, "/bin/sh", "-c", script, pids_limit=20)
    assert b"all of them" not in program.sink.text()
    assert verdict(program.outcome).error.startswith("pids_limit: ")
    assert groups_left() == []


def test_a_limit_that_cannot_be_set_does_not_keep_the_run_from_running(tmp_path, monkeypatch):
    closed = limits.Hierarchy(2, {"memory": Path("/proc"), "pids": Path("/proc")})
    monkeypatch.setattr(limits, "find_hierarchy", lambda: closed)
    program = run(tmp_path, "/bin/echo", "here", pids_limit=500)
    assert program.sink.text() == b"here\n"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            1,
            {
                "memory": {"memory.limit_in_bytes": "1048576"},
                "pids": {"pids.max": "7"},
                "cpu": {"cpu.cfs_quota_us": "150000"},
            },
        ),
        (
            2,
            {
                "memory": {"memory.max": "1048576"},
                "pids": {"pids.max": "7"},
                "cpu": {"cpu.max": "150000 100000"},
            },
        ),
    ],
)
def test_each_version_of_control_groups_has_its_own_files(version, expected):
    assert group_settings(version, Limits(2**20, 7, 1.5)) == expected


def test_a_group_of_version_2_is_used_if_drover_cgroup_names_it(tmp_path, monkeypatch):
    (tmp_path / "cgroup.subtree_control").write_text("cpu pids\n")
    monkeypatch.setenv("DROVER_CGROUP", str(tmp_path))
    find_hierarchy.cache_clear()
    found = find_hierarchy()
    find_hierarchy.cache_clear()
    assert found == limits.Hierarchy(2, {"pids": tmp_path, "cpu": tmp_path})
