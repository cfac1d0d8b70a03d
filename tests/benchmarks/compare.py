"""Measures this checkout and another commit alternately on the same machine.

`python -m tests.benchmarks.compare REV [NAME ...] [--rounds N]` prints the medians of both. The
files of the commit are extracted to a temporary directory and use this interpreter's packages. Each
round measures both sides, every other round in reverse order: noise of the machine meets both.
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from tests.benchmarks.bed import say
from tests.benchmarks.table import new_console

HERE = Path(__file__).parents[2]
# What a checkout of any version runs: one round of one benchmark, with its rows as JSON in a file.
MEASURE = """
import dataclasses, json, sys
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.bed import Bed
with Bed(1) as bed:
    rows = [dataclasses.asdict(row) for row in BENCHMARKS[sys.argv[1]](bed)]
with open(sys.argv[2], "w") as file:
    json.dump(rows, file)
"""
Rounds = list[list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The medians of one row; a ratio above 1 means that the number of this checkout is larger."""

    what: str
    on: str
    unit: str
    before: float
    now: float

    @property
    def ratio(self) -> float | None:
        return self.now / self.before if self.before else None


def main() -> int:
    arguments = _parse()
    with tempfile.TemporaryDirectory(prefix="drover-compare-") as directory:
        other = Path(directory) / "checkout"
        extract(arguments.rev, other)
        sides = {"before": other, "now": HERE}
        found = [
            comparison
            for name in arguments.names
            for comparison in compare(_measured(name, sides, arguments.rounds))
        ]
    _show(found)
    return 0


def extract(rev: str, directory: Path) -> None:
    archive = subprocess.run(["git", "archive", rev], cwd=HERE, check=True, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")


def compare(sides: Mapping[str, Rounds]) -> list[Comparison]:
    """The rows of both sides by their position, because a row may have been renamed."""
    before, now = ([*zip(*sides[side], strict=True)] for side in ("before", "now"))
    if len(before) != len(now):
        raise SystemExit(f"{len(before)} rows before and {len(now)} now cannot be compared")
    return [
        Comparison(
            *(last[0]["what"], last[0]["on"], last[0]["unit"]),
            *(median(row["drover"] for row in rows) for rows in (first, last)),
        )
        for first, last in zip(before, now, strict=True)
    ]


def _measured(name: str, sides: Mapping[str, Path], rounds: int) -> dict[str, Rounds]:
    found: dict[str, Rounds] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(sides)[:: -1 if number % 2 else 1]:
            say(f"{name}, round {number + 1}, {side}")
            found[side].append(_one_round(name, sides[side]))
    return found


def _one_round(name: str, checkout: Path) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, "-c", MEASURE, name, file.name], cwd=checkout, check=True)
        rows: list[dict[str, Any]] = json.loads(Path(file.name).read_text())
        return rows


def _show(found: Sequence[Comparison]) -> None:
    console = new_console()
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for header in ("what", "on", "unit"):
        table.add_column(header)
    for header in ("before", "now", "now / before"):
        table.add_column(header, justify="right", no_wrap=True)
    for each in found:
        ratio = "" if each.ratio is None else f"{each.ratio:.2f}"
        numbers = (f"{each.before:,.4g}", f"{each.now:,.4g}", ratio)
        table.add_row(each.what, each.on, each.unit, *numbers)
    console.print(table)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.compare", description=__doc__)
    parser.add_argument("rev", metavar="REV", help="the commit to compare with")
    default = ["throughput", "pages", "streams", "rules-tick", "deliveries"]
    parser.add_argument("names", nargs="*", default=default, metavar="NAME", help="of benchmarks")
    parser.add_argument("--rounds", type=int, default=5, help="medians of so many (5)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
