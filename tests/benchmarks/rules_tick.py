"""One tick of a thousand rules about a thousand agents, all of them due."""

from tests.benchmarks.bed import DATABASES, Bed, inside, medians
from tests.benchmarks.table import Row

RULES, AGENTS, LOOKS = 1000, 1000, 20


def measure(bed: Bed) -> list[Row]:
    stacks = {on: bed.drover(on) for on in DATABASES}
    for stack in stacks.values():
        inside(stack, "rules:write", agents=AGENTS)
    look = {"rules": RULES, "agents": AGENTS, "times": LOOKS}
    found = medians(
        bed.rounds, {on: lambda on=on: inside(stacks[on], "rules:look", **look) for on in DATABASES}
    )
    return [
        Row(
            what=f"{RULES:,} rules about {AGENTS:,} running agents, all due: one look",
            on=on,
            drover=found[on]["tick_ms"],
            unit="ms",
            at_most=50.0,
        )
        for on in DATABASES
    ]
