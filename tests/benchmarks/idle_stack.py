"""The whole of Drover with nothing to do: memory, CPU, and how soon it is ready.

The peer is the same set of processes without Drover: Redis, a bare worker, django-celery-beat,
Flower, Django under uvicorn. Neither side counts a PostgreSQL server."""

import time
from concurrent.futures import ThreadPoolExecutor
from urllib.error import URLError
from urllib.request import urlopen

import psutil

from tests.benchmarks.bed import DATABASES, PEER, SQLITE, Bed, Numbers, medians
from tests.benchmarks.looking import cpu_seconds, tree
from tests.benchmarks.peer.stack import PeerStack
from tests.benchmarks.table import Row
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

SETTLE_SECONDS, WATCH_SECONDS = 5.0, 20.0
_LIMITS = {
    "pss_mb": ("memory (PSS of all processes)", "MB", 350.0),
    "cpu_percent": ("CPU, percent of one core", "%", 2.0),
    "ready_seconds": ("ready after", "s", 4.0),
}


def measure(bed: Bed) -> list[Row]:
    stacks = {on: bed.drover(on, own_redis=True) for on in DATABASES}
    peer = bed.peer(SQLITE, own_redis=True, DROVER_CONCURRENCY="16")
    for stack in stacks.values():
        # As in `make run`. With a password, each start would spend 0.3 s on its hash.
        del stack.env["DROVER_ADMIN_PASSWORD"]
        _up(stack)  # a cold file cache and a first start are not what is measured
        stack.close()
    subjects = bed.with_peer(lambda _, on: _drover(stacks[on]), lambda _: _peer(peer))
    found = medians(bed.rounds, subjects)
    return [
        Row(
            what=f"idle stack of an empty project: {what}",
            on=on,
            drover=found[on][name],
            peer=found[PEER][name],
            unit=unit,
            at_most=limit,
        )
        for name, (what, unit, limit) in _LIMITS.items()
        for on in DATABASES
    ]


def _drover(stack: PrivateStack) -> Numbers:
    with stack:
        ready = _up(stack)
        return {"ready_seconds": ready} | _idle(stack)


def _up(stack: PrivateStack) -> float:
    """Seconds until the banner is printed and /readyz returns 200."""
    began = time.monotonic()
    stack.up()
    wait_for(lambda: _answers(f"{stack.url}/readyz"), 30, "/readyz never said yes")
    return time.monotonic() - began


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


def _peer(stack: PeerStack) -> Numbers:
    with stack:
        began = time.monotonic()
        stack.start("redis")
        # At the same time, as `up` does.
        with ThreadPoolExecutor() as pool:
            list(pool.map(stack.start, ("worker", "beat", "gateway", "flower")))
        ready = time.monotonic() - began
        return {"ready_seconds": ready} | _idle(stack)


def _idle(stack: PrivateStack) -> Numbers:
    time.sleep(SETTLE_SECONDS)
    processes = [one for parent in stack.processes.values() for one in tree(parent.pid)]
    before = cpu_seconds(processes)
    time.sleep(WATCH_SECONDS)
    spent = cpu_seconds(processes) - before
    return {"pss_mb": _pss(processes), "cpu_percent": spent / WATCH_SECONDS * 100}


def _pss(processes: list[psutil.Process]) -> float:
    """Proportional set size: a page that processes share is counted once."""
    return sum(process.memory_full_info().pss for process in processes) / 1e6
