"""The small table of counts that only grow: adding to it and reading it; not what is counted."""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from agents_app.database import execute
from agents_app.models import MetricTotal

# A name, then the values of its labels.
Key = tuple[str, ...]
ROWS_IN_ONE_STATEMENT = 200
_ADD = """
INSERT INTO drover_metric_total (name, labels, value) VALUES {}
ON CONFLICT (name, labels) DO UPDATE SET value = drover_metric_total.value + excluded.value"""
REST = "+Inf"


def add(counts: Mapping[Key, float]) -> None:
    """In the caller's transaction."""
    # In one order: two that add to the same counts never wait for each other.
    rows = [(name, json.dumps(labels), counts[name, *labels]) for name, *labels in sorted(counts)]
    for start in range(0, len(rows), ROWS_IN_ONE_STATEMENT):
        some = rows[start : start + ROWS_IN_ONE_STATEMENT]
        marks = ", ".join(["(%s, %s, %s)"] * len(some))
        execute(_ADD.format(marks), [value for row in some for value in row])


def read_totals() -> dict[Key, float]:
    rows = MetricTotal.objects.values_list("name", "labels", "value")
    return {(name, *json.loads(labels)): value for name, labels, value in rows}


# --- histograms -----------------------------------------------------------------------------


def observe(counts: dict[Key, float], key: Key, bounds: Sequence[float], value: float) -> None:
    """Counts it in the first bucket that holds it, and only there."""
    at = bisect_left(bounds, value)
    bound = f"{bounds[at]:g}" if at < len(bounds) else REST
    for each, more in (((*key, bound), 1.0), (sum_of(key[0], key[1:]), value)):
        counts[each] = counts.get(each, 0) + more


def sum_of(name: str, labels: Key) -> Key:
    return (f"{name}_sum", *labels)


def buckets(
    totals: Mapping[Key, float], key: Key, bounds: Sequence[float]
) -> list[tuple[str, float]]:
    """As Prometheus wants them: each with all that are smaller."""
    known = {each[-1] for each in totals if each[:-1] == key} - {REST}
    names = [*sorted(known | {f"{bound:g}" for bound in bounds}, key=float), REST]
    counts = accumulate(totals.get((*key, name), 0) for name in names)
    return list(zip(names, counts, strict=True))
