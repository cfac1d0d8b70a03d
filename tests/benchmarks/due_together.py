"""Thousands of schedules due in the same second: how late the last of them is on record.

Looked at from outside: a firing counts from when another connection can see its row. The column
recorded_at would flatter, because it holds the moment the tick began, not the commit."""

import math
import time
from collections.abc import Callable

from tests.benchmarks.bed import DATABASES, PEER, SQLITE, Bed, Numbers, inside, medians
from tests.benchmarks.looking import reader, time_reached
from tests.benchmarks.table import Row

LIMITS = {1_000: 0.3, 10_000: 2.0}
# The peer sends one message per loop, so more would take minutes.
PEER_SCHEDULES = 1_000
AGENTS, SCALE = 100, 1
HISTORY = 20_000
LOOK_EVERY_SECONDS = 0.01
_RECORDED = "SELECT count(*) FROM drover_firing"
_DECIDED = "SELECT count(*) FROM drover_firing WHERE outcome <> ''"


def measure(bed: Bed) -> list[Row]:
    return [row for count in LIMITS for row in _measure(bed, count)]


def _measure(bed: Bed, count: int) -> list[Row]:
    subjects = bed.with_peer(lambda b, on: _drover(b, on, count), _peer)
    if count != PEER_SCHEDULES:
        del subjects[PEER]
    found = medians(bed.rounds, subjects)
    peer = found.get(PEER, {}).get("p99")
    recorded = [
        Row(
            what=f"{count:,} schedules due at once: on record, p99",
            on=on,
            drover=found[on]["p99"],
            peer=peer,
            unit="s",
            at_most=LIMITS[count],
        )
        for on in DATABASES
    ]
    decided = [
        Row(
            what=f"{count:,} schedules due at once: the last one decided",
            on=on,
            drover=found[on]["decided"],
            unit="s",
        )
        for on in DATABASES
    ]
    return recorded + decided


def _drover(bed: Bed, on: str, count: int) -> Numbers:
    """Beat, and a worker that executes the runs of the firings, as on a small machine."""
    with bed.drover(on) as stack:
        inside(stack, "fleet:write_agents", count=AGENTS, scale=SCALE, command=["/bin/true"])
        inside(stack, "fleet:write_schedules", count=count)
        inside(stack, "fleet:write_history", items=HISTORY)
        for name in ("worker-1", "beat"):
            stack.start(name)
        due_at = inside(stack, "fleet:arm", in_seconds=3)
        with reader(stack) as read:
            p99 = _lateness(lambda: read(_RECORDED), due_at, math.ceil(count * 0.99))
            decided_at = time_reached(lambda: read(_DECIDED), count, LOOK_EVERY_SECONDS)
    return {"p99": p99, "decided": decided_at - due_at}


def _peer(bed: Bed) -> Numbers:
    """The scheduler of django-celery-beat; a firing counts when its message is in Redis."""
    with bed.peer(SQLITE) as stack:
        inside(stack, "periodic:write", count=PEER_SCHEDULES)
        stack.start("beat")
        # The peer reads changed rows every five seconds.
        due_at = inside(stack, "periodic:arm", in_seconds=7)
        return {"p99": _lateness(stack.waiting, due_at, math.ceil(PEER_SCHEDULES * 0.99))}


def _lateness(count: Callable[[], int], due_at: float, wanted: int) -> float:
    assert count() == 0, "something fired before its time"
    time.sleep(max(0.0, due_at - time.time()))
    return time_reached(count, wanted, LOOK_EVERY_SECONDS) - due_at
