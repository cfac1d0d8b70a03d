"""Runs per second, from queued to finished rows, and CPU time of a run."""

import json

from tests.benchmarks.bed import DATABASES, PEER, Bed, Numbers, inside, medians
from tests.benchmarks.looking import cpu_seconds, reader, seconds_of, time_reached, tree
from tests.benchmarks.table import Row
from tests.parts.waiting import wait_for

AGENTS, SCALE, RUNS = 10, 2, 3000
THREADS = str(AGENTS * SCALE)
COMMAND = ["/bin/true"]
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_LAST_END = "SELECT max(finished_at) FROM drover_run"
_SUCCEEDED = "SELECT count(*) FROM drover_run WHERE state = 'succeeded'"


def measure(bed: Bed) -> list[Row]:
    found = medians(bed.rounds, bed.with_peer(_drover, _peer))
    peer = found[PEER]
    rates = [
        Row(
            what="runs per second, rows durable all the way",
            on=on,
            drover=found[on]["per_second"],
            peer=peer["per_second"],
            unit="/s",
            at_least_of_peer=1.0,
        )
        for on in DATABASES
    ]
    costs = [
        Row(
            what="CPU per run: the worker and its children",
            on=on,
            drover=found[on]["cpu_ms"],
            peer=peer["cpu_ms"],
            unit="ms",
        )
        for on in DATABASES
    ]
    return rates + costs


def _drover(bed: Bed, on: str) -> Numbers:
    """A worker with its guard and a Redis; from the first admission to the last end."""
    with bed.drover(on, DROVER_CONCURRENCY=THREADS) as stack:
        fleet = {"agents": AGENTS, "scale": SCALE, "command": COMMAND, "items": RUNS}
        inside(stack, "fleet:write_work", **fleet)
        worker = tree(stack.start("worker-1").pid)
        before = cpu_seconds(worker)
        began_at = inside(stack, "fleet:release")
        with reader(stack) as read:
            time_reached(lambda: read(_ENDED), RUNS, every_seconds=0.2)
            spent = cpu_seconds(worker) - before
            assert read(_SUCCEEDED) == RUNS
            return _numbers(seconds_of(read(_LAST_END)) - began_at, spent)


def _peer(bed: Bed) -> Numbers:
    """A plain task on the same Redis; all messages are queued before its worker is ready."""
    with bed.peer(DROVER_CONCURRENCY=THREADS, PEER_EXPECTED=str(RUNS)) as stack:
        stack.send_runs(RUNS)
        stack.start("worker")
        wait_for(stack.reported, 120, "the peer does not finish")
        spent = json.loads(stack.reported())
    return _numbers(spent["seconds"], spent["cpu_seconds"])


def _numbers(seconds: float, cpu_seconds: float) -> Numbers:
    return {"per_second": RUNS / seconds, "cpu_ms": cpu_seconds / RUNS * 1000}
