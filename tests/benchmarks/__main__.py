"""`python -m tests.benchmarks [NAME...]`: measures, prints a table, fails if a limit is missed."""

import argparse
import sys
from collections.abc import Callable, Mapping

import pytest

from tests.benchmarks import (
    big_output,
    containers,
    deliveries,
    due_together,
    idle_stack,
    loops,
    many_schedules,
    next_fires,
    overhead,
    pages,
    punctuality,
    rules_tick,
    sandbox,
    signals,
    streams,
    throughput,
)
from tests.benchmarks.bed import Bed, say
from tests.benchmarks.table import Row, new_console, show

BENCHMARKS: Mapping[str, Callable[[Bed], list[Row]]] = {
    "throughput": throughput.measure,
    "loops": loops.measure,
    "due-together": due_together.measure,
    "many-schedules": many_schedules.measure,
    "next-fires": next_fires.measure,
    "punctuality": punctuality.measure,
    "idle-stack": idle_stack.measure,
    "big-output": big_output.measure,
    "overhead": overhead.measure,
    "sandbox": sandbox.measure,
    "containers": containers.measure,
    "deliveries": deliveries.measure,
    "streams": streams.measure,
    "signals": signals.measure,
    "pages": pages.measure,
    "rules-tick": rules_tick.measure,
}


def main() -> int:
    arguments = _parse()
    rows: list[Row] = []
    try:
        with Bed(arguments.rounds) as bed:
            for name in arguments.names or BENCHMARKS:
                say(name)
                rows += BENCHMARKS[name](bed)
    except pytest.skip.Exception as skipped:
        sys.exit(f"cannot measure: {skipped}")
    show(rows, new_console())
    return 1 if any(row.missed for row in rows) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=3, help="medians of so many (3)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: choose {', '.join(BENCHMARKS)}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
