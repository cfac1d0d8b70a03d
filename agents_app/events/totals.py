"""The table of totals for /metrics: adding to counts and histograms, and reading them."""

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
OVERFLOW = "+Inf"


def add_to_totals(counts: Mapping[Key, float]) -> None:
    """Add the counts in the caller's transaction."""
    # Always in the same order, so that two transactions never wait for each other.
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
    """Count a value in the smallest bucket that contains it, and in the sum."""
    at = bisect_left(bounds, value)
    bound = f"{bounds[at]:g}" if at < len(bounds) else OVERFLOW
    for each, more in (((*key, bound), 1.0), (sum_key(key[0], key[1:]), value)):
        counts[each] = counts.get(each, 0) + more


def sum_key(name: str, labels: Key) -> Key:
    return (f"{name}_sum", *labels)


def buckets(
    totals: Mapping[Key, float], key: Key, bounds: Sequence[float]
) -> list[tuple[str, float]]:
    """The cumulative buckets of a histogram, as Prometheus expects them."""
    known = {each[-1] for each in totals if each[:-1] == key} - {OVERFLOW}
    names = [*sorted(known | {f"{bound:g}" for bound in bounds}, key=float), OVERFLOW]
    counts = accumulate(totals.get((*key, name), 0) for name in names)
    return list(zip(names, counts, strict=True))
