"""reference/metrics.md from the figures that /metrics shows; reads the database."""

from datetime import UTC, datetime

from agents_app.maintenance import Histogram, read_metrics
from gateway_app.metrics import PREFIX
from tests.docs.generate.markdown import code, page, table

_INTRODUCTION = """
`GET /metrics` returns the metrics in the formats of Prometheus and OpenMetrics. Requests from the
same machine need no token while Drover listens on loopback; other requests need a token of the
tenant `default` with the scope `read`. Counters and histograms are totals that a duty updates
every 15 seconds and that are kept in the database: they survive a restart.
Metrics with an `agent` label cover the first 2000 agents; the sums cover all agents.
"""


def render() -> str:
    rows = [
        (
            code(f"{PREFIX}{each.name}" + _suffix(each)),
            "histogram" if isinstance(each, Histogram) else each.kind,
            ", ".join(code(label) for label in each.labels),
            each.about,
        )
        for each in read_metrics(datetime.now(UTC))
    ]
    names = table(("metric", "type", "labels", "meaning"), sorted(rows))
    return page("Metrics", "agents_app/maintenance/metrics.py", _INTRODUCTION, names)


def _suffix(figure: object) -> str:
    return "_total" if getattr(figure, "kind", "") == "counter" else ""
