"""A run that prints a gigabyte: reading speed and memory of the worker."""

import subprocess
import time

from tests.benchmarks.bed import DATABASES, PEER, Bed, Numbers, inside, medians
from tests.benchmarks.looking import reader, seconds_of, worker_process
from tests.benchmarks.table import Row

SIZE = 1_000_000_000
PRINT = f"yes 'an agent that has very much to say about every single thing' | head -c {SIZE}"
LOOK_EVERY_SECONDS = 0.05
GIVE_UP_SECONDS = 120
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_RUN = "SELECT started_at, finished_at, output_bytes FROM drover_run"


def measure(bed: Bed) -> list[Row]:
    found = medians(bed.rounds, bed.with_peer(_drover, _peer))
    speed = [
        Row(
            what="a run that prints 1 GB: read at (peer: | cat > /dev/null)",
            on=on,
            drover=found[on]["mb_per_second"],
            peer=found[PEER]["mb_per_second"],
            unit="MB/s",
            at_least=100.0,
        )
        for on in DATABASES
    ]
    memory = [
        Row(
            what="a run that prints 1 GB: the worker grows by",
            on=on,
            drover=found[on]["growth_mb"],
            unit="MB",
            at_most=100.0,
        )
        for on in DATABASES
    ]
    return speed + memory


def _drover(bed: Bed, on: str) -> Numbers:
    with bed.drover(on) as stack:
        command = ["/bin/sh", "-c", PRINT]
        inside(stack, "fleet:write_work", agents=1, scale=1, command=command, items=1)
        worker = worker_process(stack.start("worker-1").pid)
        before = highest = worker.memory_info().rss
        inside(stack, "fleet:release")
        give_up_at = time.monotonic() + GIVE_UP_SECONDS
        with reader(stack) as read:
            while not read(_ENDED):
                highest = max(highest, worker.memory_info().rss)
                assert time.monotonic() < give_up_at, stack.log("worker-1")
                time.sleep(LOOK_EVERY_SECONDS)
        [run] = stack.rows(_RUN)
    assert run["output_bytes"] == SIZE
    seconds = seconds_of(run["finished_at"]) - seconds_of(run["started_at"])
    return {"mb_per_second": SIZE / 1e6 / seconds, "growth_mb": (highest - before) / 1e6}


def _peer(_: Bed) -> Numbers:
    began = time.monotonic()
    subprocess.run(["/bin/sh", "-c", f"{PRINT} | cat > /dev/null"], check=True)
    return {"mb_per_second": SIZE / 1e6 / (time.monotonic() - began)}
