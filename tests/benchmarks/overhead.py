"""Overhead of a run over the bare program, as a process and as another user; many at once."""

import subprocess
import time

from tests.benchmarks.bed import DATABASES, PEER, SQLITE, Bed, Numbers, inside, medians
from tests.benchmarks.looking import reader, seconds_of, time_reached, worker_process
from tests.benchmarks.table import Row
from tests.parts.users_part import Users

RUNS = 100
COMMAND = ["/bin/true"]
LIVE = 200
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_SUCCEEDED = "SELECT count(*) FROM drover_run WHERE state = 'succeeded'"
_LAST_END = "SELECT max(finished_at) FROM drover_run"
_FIRST_START = "SELECT min(started_at) FROM drover_run"
_RUNNING = "SELECT count(*) FROM drover_run WHERE state = 'running' AND pid IS NOT NULL"


def measure(bed: Bed) -> list[Row]:
    return _overhead(bed) + _many_live(bed)


def _overhead(bed: Bed) -> list[Row]:
    users = Users()
    try:
        other = {"type": "host-user", "run_as": users.agent}
        subjects = {PEER: _bare}
        for on in DATABASES:
            subjects |= {
                f"process, {on}": lambda on=on: _drover(bed, on, {}),
                f"host-user, {on}": lambda on=on: _drover(bed, on, other),
            }
        found = medians(bed.rounds, subjects)
    finally:
        users.remove()
    bare = found.pop(PEER)["ms"]
    return [
        Row(
            what="a run of /bin/true above the bare program: "
            + ("a process" if name.startswith("process") else "another user's"),
            on=name.partition(", ")[2],
            drover=numbers["ms"] - bare,
            peer=bare,
            unit="ms",
            at_most=15.0 if name.startswith("process") else 40.0,
        )
        for name, numbers in found.items()
    ]


def _drover(bed: Bed, on: str, runtime: dict[str, str]) -> Numbers:
    """One slot, so that runs are sequential; from the first start to the last end."""
    with bed.drover(on) as stack:
        stack.data.parent.chmod(0o711)
        fleet = {"agents": 1, "scale": 1, "command": COMMAND, "items": RUNS, "runtime": runtime}
        inside(stack, "fleet:write_work", **fleet)
        stack.start("worker-1")
        inside(stack, "fleet:release")
        with reader(stack) as read:
            time_reached(lambda: read(_ENDED), RUNS, every_seconds=0.1)
            assert read(_SUCCEEDED) == RUNS, stack.rows("SELECT state, error FROM drover_run")[:3]
            seconds = seconds_of(read(_LAST_END)) - seconds_of(read(_FIRST_START))
    return {"ms": seconds / RUNS * 1000}


def _bare() -> Numbers:
    began = time.monotonic()
    for _ in range(RUNS):
        subprocess.run(COMMAND, check=True, capture_output=True)
    return {"ms": (time.monotonic() - began) / RUNS * 1000}


def _many_live(bed: Bed) -> list[Row]:
    with bed.drover(SQLITE, DROVER_CONCURRENCY=str(LIVE)) as stack:
        command = ["/bin/sleep", "120"]
        inside(stack, "fleet:write_work", agents=LIVE // 10, scale=10, command=command, items=LIVE)
        worker = worker_process(stack.start("worker-1").pid)
        inside(stack, "fleet:release")
        with reader(stack) as read:
            time_reached(lambda: read(_RUNNING), LIVE, every_seconds=0.2)
            assert read(_RUNNING) == LIVE
        megabytes = worker.memory_full_info().pss / 1e6
        stack.manage("stop", "--timeout", "0")
        for process in worker.children():
            process.kill()
    what = f"a worker with {LIVE} live runs: memory"
    return [Row(what=what, on=SQLITE, drover=megabytes, unit="MB", at_most=150.0)]
