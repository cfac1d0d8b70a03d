"""Prints what describes the structure of one or several checkouts of Drover, as a table.

`python -m tests.codebase.structure_report [--details] [--trace] [CHECKOUT ...]`. Two checkouts are
the columns "before" and "after". Nothing is imported from a checkout, so that it can be of any
version; --trace runs it in processes of its own.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.codebase.run_trace import TraceError, trace
from tests.codebase.structure import (
    LONGEST_FUNCTION,
    Checkout,
    database_branches,
    import_cycles,
    import_graph,
    imports_in_functions,
    long_functions,
    repeated_classes,
)

THIS_CHECKOUT = Path(__file__).resolve().parents[2]
TRACED = "files a scheduled run passes through"


@dataclass(frozen=True)
class Count:
    """One line of the table: a number, what else is said of it, and the places it counts."""

    label: str
    number: int
    places: Sequence[str] = ()
    also: str = ""

    @property
    def text(self) -> str:
        return f"{self.number} {self.also}".rstrip()


def counts(checkout: Checkout) -> list[Count]:
    return [*_sizes(checkout), *_shape(checkout), *_imports(checkout)]


def _sizes(checkout: Checkout) -> list[Count]:
    found = []
    for label, files in (("product", checkout.product), ("tests", checkout.tests)):
        found.append(Count(f"Python files, {label}", len(files)))
        found.append(Count(f"lines, {label}", sum(file.lines for file in files)))
    for package in ("agents_app", "gateway_app"):
        found.append(_listed(f"modules in the root of {package}", checkout.in_root_of(package)))
    return found


def _shape(checkout: Checkout) -> list[Count]:
    branches = database_branches(checkout)
    files = {place.partition(":")[0] for place in branches}
    classes = [f"{name}: {', '.join(at)}" for name, at in repeated_classes(checkout).items()]
    functions = long_functions([*checkout.product, *checkout.tests])
    return [
        _listed(
            "database branches outside agents_app/database", branches, f"in {len(files)} files"
        ),
        _listed("class names defined more than once", classes),
        _listed(f"functions over {LONGEST_FUNCTION} lines", functions),
    ]


def _imports(checkout: Checkout) -> list[Count]:
    cycles = import_cycles(import_graph(checkout))
    sizes = f"of {', '.join(str(len(cycle)) for cycle in cycles)} modules" if cycles else ""
    return [
        _listed("imports inside functions", imports_in_functions(checkout)),
        _listed(
            "imports inside functions, of Drover's own modules",
            imports_in_functions(checkout, only_own=True),
        ),
        _listed("import cycles", [" ".join(cycle) for cycle in cycles], sizes),
    ]


def traced_files(checkout: Checkout) -> list[Count]:
    files = trace(checkout.root)
    flat = [file for file in files if file.rpartition("/")[0] == "agents_app"]
    return [_listed(TRACED, files), _listed("of these in the root of agents_app", flat)]


def _listed(label: str, places: Sequence[str], also: str = "") -> Count:
    return Count(label, len(places), places, also)


def table(columns: dict[str, list[Count]]) -> str:
    first = next(iter(columns.values()))
    rows = [("", *columns)]
    rows += [
        (one.label, *(column[number].text for column in columns.values()))
        for number, one in enumerate(first)
    ]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def headings(roots: Sequence[Path]) -> list[str]:
    """Two checkouts are before and after; any other number are told apart by their directories."""
    if len(roots) == 2:
        return ["before", "after"]
    return [str(root) for root in roots] if len(roots) > 2 else ["now"]


def report(roots: Sequence[Path], *, traced: bool, details: bool) -> str:
    columns: dict[str, list[Count]] = {}
    for heading, root in zip(headings(roots), roots, strict=True):
        checkout = Checkout(root.resolve())
        columns[heading] = counts(checkout) + (traced_files(checkout) if traced else [])
    lists = [
        "\n  ".join([f"{heading}: {one.label}, {one.text}", *one.places])
        for heading, column in columns.items()
        for one in column
        if one.places and (details or one.label == TRACED)
    ]
    return "\n\n".join([table(columns), *lists])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="structure_report", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[THIS_CHECKOUT])
    parser.add_argument("--details", action="store_true", help="also list what was counted")
    parser.add_argument("--trace", action="store_true", help="also trace a scheduled run")
    given = parser.parse_args(arguments)
    try:
        print(report(given.checkouts, traced=given.trace, details=given.details))
    except (OSError, subprocess.CalledProcessError, TraceError) as error:
        said = error.stderr.decode() if isinstance(error, subprocess.CalledProcessError) else error
        print(f"structure_report: {said}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
