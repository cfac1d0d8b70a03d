"""The delay on an idle machine from the due time of a schedule to the start of its program.

The program is `date`: it says itself, in nanoseconds, when it ran. That includes loading it."""

from tests.benchmarks.bed import DATABASES, PEER, SQLITE, Bed, Numbers, inside, medians, percentile
from tests.benchmarks.looking import reader, seconds_of, time_reached
from tests.benchmarks.table import Row
from tests.parts.waiting import wait_for

FIRINGS = 60
# No multiple of a tick's second, so that the instants fall anywhere between two ticks.
APART_SECONDS = 0.23
COMMAND = ["/bin/date", "+%s.%N"]
LIMITS = {50: 30.0, 99: 100.0}
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_STARTS = """
SELECT f.due_at, o.data FROM drover_firing f
JOIN drover_work_item w ON w.firing_id = f.id JOIN drover_run r ON r.work_item_id = w.id
JOIN drover_run_output o ON o.run_id = r.id"""


def measure(bed: Bed) -> list[Row]:
    found = medians(bed.rounds, bed.with_peer(_drover, _peer))
    return [
        Row(
            what=f"idle machine: due until the program runs, p{percent}",
            on=on,
            drover=found[on][f"p{percent}"],
            peer=found[PEER][f"p{percent}"],
            unit="ms",
            at_most=limit,
        )
        for percent, limit in LIMITS.items()
        for on in DATABASES
    ]


def _drover(bed: Bed, on: str) -> Numbers:
    with bed.drover(on) as stack:
        inside(stack, "fleet:write_agents", count=10, scale=4, command=COMMAND)
        inside(stack, "fleet:write_schedules", count=FIRINGS)
        for name in ("worker-1", "beat"):
            stack.start(name)
        inside(stack, "fleet:arm", in_seconds=3, apart_seconds=APART_SECONDS)
        with reader(stack) as read:
            time_reached(lambda: read(_ENDED), FIRINGS, every_seconds=1)
        starts = [(seconds_of(r["due_at"]), float(bytes(r["data"]))) for r in stack.rows(_STARTS)]
    return _numbers(starts)


def _peer(bed: Bed) -> Numbers:
    """The beat of django-celery-beat and a plain worker, which write no rows before the program."""
    with bed.peer(SQLITE, DROVER_CONCURRENCY="16") as stack:
        inside(stack, "periodic:write", count=FIRINGS, task="run_date")
        for name in ("worker", "beat"):
            stack.start(name)
        inside(stack, "periodic:arm", in_seconds=7, apart_seconds=APART_SECONDS)
        wait_for(lambda: len(stack.reported().splitlines()) == FIRINGS, 60, "the peer is stuck")
        starts = [tuple(map(float, line.split())) for line in stack.reported().splitlines()]
    return _numbers([(due_at, started_at) for due_at, started_at in starts])


def _numbers(starts: list[tuple[float, float]]) -> Numbers:
    assert len(starts) == FIRINGS, f"{len(starts)} of {FIRINGS}"
    late = [(started_at - due_at) * 1000 for due_at, started_at in starts]
    assert min(late) > 0, "something fired before its time"
    return {f"p{percent}": percentile(late, percent) for percent in LIMITS}
