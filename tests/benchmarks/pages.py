"""The pages of a large fleet with 100,000 runs of 1,000 agents."""

from tests.benchmarks.bed import DATABASES, Bed, inside, medians
from tests.benchmarks.table import Row

AGENTS, RUNS = 1000, 100_000
TIMES = 5
AT_MOST_MS = 200.0


def measure(bed: Bed) -> list[Row]:
    stacks = {on: bed.drover(on) for on in DATABASES}
    for stack in stacks.values():
        inside(stack, "pages:write", agents=AGENTS, runs=RUNS)
    found = medians(
        bed.rounds,
        {
            on: lambda stack=stack: inside(stack, "pages:measure", times=TIMES)  # type: ignore[misc]
            for on, stack in stacks.items()
        },
    )
    return [
        Row(
            what=f"page with {RUNS:,} runs of {AGENTS:,} agents: {page}",
            on=on,
            drover=taken,
            unit="ms",
            at_most=AT_MOST_MS,
        )
        for on in DATABASES
        for page, taken in found[on].items()
    ]
