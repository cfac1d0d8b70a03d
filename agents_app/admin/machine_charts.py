"""How the hosts were doing, as small curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agents_app.admin.charts import LineChart, Point, chart
from agents_app.admin.timeline import TimelineWindow
from agents_app.models import MachineSnapshot

MOST_HOSTS = 4
# One a minute and host.
MOST_SNAPSHOTS = 24 * 60 * MOST_HOSTS


@dataclass(frozen=True, slots=True)
class HostCharts:
    host: str
    seen_at: datetime
    charts: Sequence[LineChart]


def host_charts(window: TimelineWindow) -> list[HostCharts]:
    """Of the hosts that were seen last."""
    snapshots = MachineSnapshot.objects.filter(at__gte=window.since).order_by("-at")
    by_host: dict[str, list[MachineSnapshot]] = {}
    for snapshot in snapshots[:MOST_SNAPSHOTS]:
        by_host.setdefault(snapshot.host, []).append(snapshot)
    return [
        HostCharts(host, taken[0].at, _charts(taken, window))
        for host, taken in list(by_host.items())[:MOST_HOSTS]
    ]


def _charts(taken: Sequence[MachineSnapshot], window: TimelineWindow) -> list[LineChart]:
    def points(name: str, divide_by: float = 1) -> list[Point]:
        return [(each.at, getattr(each, name) / divide_by) for each in taken]

    memory = [(each.at, 100 * each.memory_used_mb / (each.memory_total_mb or 1)) for each in taken]
    return [
        chart("Processor", points("cpu_percent"), window, unit="%", top=100),
        chart("Memory", memory, window, unit="%", top=100),
        chart("Disk free", points("disk_free_mb", 1000), window, unit="GB", digits=1, lowest=True),
        chart("Unfinished runs", points("active_runs"), window),
        chart("Work in queues", points("queue_depth"), window),
        chart("Workers alive", points("active_workers"), window),
    ]
