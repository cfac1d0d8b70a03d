"""For tuning: CPU time of a run on one thread, without Celery, Redis and other threads."""

from tests.benchmarks.bed import DATABASES, PEER, Bed, Numbers, inside, medians
from tests.benchmarks.table import Row

RUNS = 500
_WHAT = {"own_ms": "own CPU", "children_ms": "CPU of children", "wall_ms": "from start to start"}


def measure(bed: Bed) -> list[Row]:
    found = medians(bed.rounds, bed.with_peer(_drover, _peer))
    return [
        Row(
            what=f"a run on one thread (peer: subprocess.run): {what}",
            on=on,
            drover=found[on][name],
            peer=found[PEER][name],
            unit="ms",
        )
        for name, what in _WHAT.items()
        for on in DATABASES
    ]


def _drover(bed: Bed, on: str) -> Numbers:
    with bed.drover(on) as stack:
        numbers: Numbers = inside(stack, "loops:drover", runs=RUNS)
        return numbers


def _peer(bed: Bed) -> Numbers:
    with bed.peer() as stack:
        numbers: Numbers = inside(stack, "loops:bare", runs=RUNS)
        return numbers
