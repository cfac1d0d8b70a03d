"""`python -m tests.soak`: kills processes of a stack under load, prints counts, fails on a loss."""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.real_fleet import RealFleet
from tests.soak import reading
from tests.soak.fleet import DATABASES, new_directory, soaked_fleet
from tests.soak.killing import WEIGHTS, Killer
from tests.soak.load import Load
from tests.soak.report import SoakReport

# Until each role was killed at least once with near certainty.
ALL_ROLES_SECONDS = 100


def main() -> int:
    arguments = _parse()
    failed = False
    for database in [arguments.database] if arguments.database else DATABASES:
        directory = new_directory()
        print(f"soak on {database} in {directory}", file=sys.stderr, flush=True)
        report = soak(database, directory, arguments.seconds, arguments.seed)
        print(report, flush=True)
        if report.problems:
            failed = True
            print(f"  kept for inspection: {directory}", flush=True)
        else:
            shutil.rmtree(directory)
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--database", choices=DATABASES, help="both, one after the other")
    parser.add_argument("--seconds", type=float, default=600, help="for each database")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    return parser.parse_args()


def soak(database: str, directory: Path, seconds: float, seed: int) -> SoakReport:
    """Start a stack, kill its processes under load, let it settle, and compare."""
    with soaked_fleet(database, directory) as fleet:
        killer = Killer(fleet.stack, seed, _progress(time.monotonic()))
        killer.ensure_running()
        load = Load(fleet.stack).start()
        began = time.monotonic()
        killer.run(seconds)
        took = time.monotonic() - began
        load.stop()
        ended_at = datetime.now(UTC)
        _await_last_minute(fleet, ended_at)
        reading.pause_schedules(fleet)
        unsettled = reading.unsettled_work(fleet)
        return SoakReport(
            database=database,
            seconds=took,
            seed=seed,
            kills=killer.kills,
            runs=reading.runs_by_state(fleet),
            answers=load.answers,
            comparisons=reading.read_comparisons(fleet, load, ended_at),
            overlaps=reading.overlaps(fleet),
            unsettled=unsettled,
            violations=reading.violations(fleet),
            missed_roles=[
                role for role in WEIGHTS if seconds >= ALL_ROLES_SECONDS and not killer.kills[role]
            ],
        )


def _await_last_minute(fleet: RealFleet, until: datetime) -> None:
    """A beat that was just started may claim the last instant a few seconds later."""
    last = until.replace(second=0, microsecond=0)
    end_at = time.monotonic() + 30
    while time.monotonic() < end_at and not reading.has_fired(fleet, last):
        time.sleep(0.5)


def _progress(began: float) -> Callable[[str], None]:
    def report(text: str) -> None:
        print(f"  {time.monotonic() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    return report


if __name__ == "__main__":
    sys.exit(main())
