"""A hundred thousand schedules that are not due: a tick, an edit, and memory of beat."""

import time

import psutil

from tests.benchmarks.bed import DATABASES, PEER, SQLITE, Bed, Numbers, inside, medians
from tests.benchmarks.table import Row
from tests.parts.stack_part import PrivateStack

SCHEDULES = 100_000
# The peer reads all rows again after any edit: more would take minutes.
PEER_SCHEDULES = 10_000
TICKS, EDITS, PEER_EDITS = 200, 50, 3
SETTLE_SECONDS = 5.0
_LIMITS = {
    "tick_ms": ("one tick", "ms", 2.0),
    "edit_ms": ("save one, then tick", "ms", 10.0),
    "beat_mb": ("memory of beat", "MB", 150.0),
}


def measure(bed: Bed) -> list[Row]:
    stacks = {on: bed.drover(on) for on in DATABASES}
    for stack in stacks.values():
        inside(stack, "fleet:write_agents", count=100, scale=1, command=["/bin/true"])
        inside(stack, "fleet:write_schedules", count=SCHEDULES)
    peer = bed.peer(SQLITE)
    inside(peer, "periodic:write", count=PEER_SCHEDULES)
    found = medians(
        bed.rounds, bed.with_peer(lambda _, on: _drover(stacks[on]), lambda _: _peer(peer))
    )
    return [
        Row(
            what=f"{SCHEDULES:,} schedules (peer: {PEER_SCHEDULES:,}), none due: {what}",
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
    ticks: Numbers = inside(stack, "ticks:drover", ticks=TICKS, edits=EDITS)
    return ticks | {"beat_mb": _beat_megabytes(stack)}


def _peer(stack: PrivateStack) -> Numbers:
    ticks: Numbers = inside(stack, "ticks:peer", ticks=TICKS, edits=PEER_EDITS)
    return ticks | {"beat_mb": _beat_megabytes(stack)}


def _beat_megabytes(stack: PrivateStack) -> float:
    """Resident memory of a real beat process after a few ticks."""
    beat = stack.start("beat")
    time.sleep(SETTLE_SECONDS)
    resident = psutil.Process(beat.pid).memory_info().rss
    stack.stop("beat")
    return float(resident / 1e6)
