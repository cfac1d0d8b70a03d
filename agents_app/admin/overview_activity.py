"""The activity panel of the overview: timeline of runs and charts of waiting times."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from agents_app.admin.filters import number_in
from agents_app.admin.line_charts import LineChart, chart
from agents_app.admin.overview_agents import names_of
from agents_app.admin.timeline import (
    CHOICES,
    Live,
    TimelineWindow,
    busiest,
    lanes,
    marks,
    window_of,
)
from agents_app.models import MachineSnapshot, Run, Tenant
from agents_app.reports import RunGroup, group_ended_runs, measure_firing_lateness

MOST_LIVE = 500
# Each host stores one snapshot a minute.
MOST_SNAPSHOTS = 3000


def activity(
    request: HttpRequest,
    tenants: Sequence[Tenant],
    live: Sequence[Live],
    queued: int,
    now: datetime,
) -> dict[str, Any]:
    """The runs of all tenants, or of the one in the address; machines store only the queue of all
    tenants."""
    window = window_of(request.GET.get("hours"), now)
    asked = number_in(request, "tenant")
    tenant_id = next((tenant.pk for tenant in tenants if tenant.pk == asked), None)
    piles = group_ended_runs(window.since, window.piece_seconds, tenant_id)
    live = [run for run in live if tenant_id in {None, run.tenant_id}]
    runs, left_out = busiest(piles, live)
    shown = lanes(piles, live, names_of(runs), runs, window)
    return {
        "window": window,
        "choices": list(CHOICES),
        "marks": marks(window),
        "lanes": shown,
        "lanes_left_out": left_out,
        "tenant_id": tenant_id,
        "tenants": [(tenant.pk, tenant.name) for tenant in tenants] if len(tenants) > 1 else [],
        "charts": [
            *([] if tenant_id else [_queue_chart(window, queued)]),
            _lateness_chart(window, tenant_id),
            _wait_chart(piles, window),
        ],
    }


def live_runs() -> list[Live]:
    """Unfinished runs, latest first."""
    # Sorted in Python: with ORDER BY SQLite would read all runs.
    unfinished = Run.objects.filter(slot__isnull=False).order_by()
    columns = ("agent_id", "pk", "state", "tenant_id", "started_at", "created_at")
    found = [
        Live(agent_id, run_id, state, started_at or created_at, tenant_id)
        for agent_id, run_id, state, tenant_id, started_at, created_at in unfinished.values_list(
            *columns
        )[:MOST_LIVE]
    ]
    return sorted(found, key=lambda run: -run.run_id)


def _queue_chart(window: TimelineWindow, queued: int) -> LineChart:
    """The stored value of each minute and the current value."""
    snapshots = MachineSnapshot.objects.filter(at__gte=window.since).order_by("-at")
    points: Iterable[tuple[datetime, int]] = snapshots.values_list("at", "queue_depth")
    known = list(points[:MOST_SNAPSHOTS])  # type: ignore[index]
    about = "Work items waiting for a slot"
    return chart("Queued work items", [*known, (window.until, queued)], window, about=about)


def _lateness_chart(window: TimelineWindow, tenant_id: int | None) -> LineChart:
    late = measure_firing_lateness(window.since, window.piece_seconds, tenant_id)
    points = [(each.at, each.seconds) for each in late]
    about = "Longest delay between the due time of a schedule and its recording"
    return chart("Schedule lateness", points, window, unit="s", digits=2, about=about)


def _wait_chart(piles: Iterable[RunGroup], window: TimelineWindow) -> LineChart:
    points = [(pile.ended_at, pile.waited_seconds) for pile in piles]
    about = "Longest time between the assignment of a slot and the start on a worker"
    return chart("Worker wait", points, window, unit="s", digits=2, about=about)
