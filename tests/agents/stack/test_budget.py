"""What an idle stack may cost: memory, processor time, and patience at the start."""

import re
import time

import psutil
import pytest

from tests.parts.fixtures import NewStack
from tests.parts.processes import tree_of

MOST_MEMORY_MB = 350
MOST_CPU_PERCENT = 2.0
LONGEST_START_SECONDS = 4.0


def cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


@pytest.mark.slow
def test_an_idle_stack_stays_within_its_budget(new_stack: NewStack) -> None:
    stack = new_stack(DROVER_CONCURRENCY="16", DROVER_RECONCILE_SECONDS="10")
    processes = [psutil.Process(pid) for pid in tree_of(stack.up().pid)]
    time.sleep(5)
    before, started = cpu_seconds(processes), time.monotonic()
    time.sleep(10)
    percent = 100 * (cpu_seconds(processes) - before) / (time.monotonic() - started)
    memory = sum(process.memory_full_info().pss for process in processes) / 2**20
    waited = re.findall(r"Drover is ready \(([\d.]+) s\)", stack.log("up"))
    print(f"\nidle stack: {memory:.0f} MB, {percent:.1f} % CPU, ready after {waited[0]} s")
    assert memory <= MOST_MEMORY_MB
    assert percent <= MOST_CPU_PERCENT
    assert float(waited[0]) <= LONGEST_START_SECONDS
