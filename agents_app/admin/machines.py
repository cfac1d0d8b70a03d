"""Pages of workers, machines and the scheduler, with charts of each host and a link to Flower."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb, may_see, utc_now
from agents_app.admin.formatting import badge, link_to, when
from agents_app.admin.line_charts import LineChart, Point, chart
from agents_app.admin.summaries import RunSummary, count_by, run_summaries
from agents_app.admin.timeline import CHOICES, TimelineWindow, window_of
from agents_app.conf import CONF, TYPED_PROGRAM
from agents_app.installation import is_loopback
from agents_app.models import MachineSnapshot, Run, Scheduler, Worker
from agents_app.runs import scheduler_state, shutdown

LISTED_ROWS = 10
# Runs that ended on a worker are searched among this many latest runs: no index finds them.
MOST_RUNS = 2000
MOST_HOSTS = 4
# Each host stores one snapshot a minute.
MOST_SNAPSHOTS = 24 * 60 * MOST_HOSTS


def worker_state(worker: Worker, now: datetime) -> str:
    """`silent` for a worker whose lease has expired although its row has not ended."""
    silent = worker.ended_at is None and worker.lease_until < now
    return "silent" if silent else str(worker.state)


@admin.register(Worker)
class WorkerAdmin(RecordAdmin):
    page_template = "drover/worker.html"
    list_before_template = "drover/machines.html"
    list_display = ["name", "state_badge", "host", "pid", "busy", "started", "lease"]
    list_filter = ["state", "host"]
    search_fields = ["name", "host"]
    ordering = ["-id"]
    fields = [
        *("name", "host", "pid", "state", "concurrency"),
        *("started_at", "lease_until", "ended_at", "boot_id"),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        workers: QuerySet[Worker] = super().get_queryset(request)
        return workers.annotate(running=count_by("worker", Run.objects.filter(slot__isnull=False)))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.charts)
        return [path("charts/", view, name="agents_app_worker_charts"), *super().get_urls()]

    def charts(self, request: HttpRequest) -> HttpResponse:
        """The charts above the lists of workers and machines, loaded after the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = utc_now()
        window = window_of(request.GET.get("hours"), now)
        hosts = [
            {"host": each.host, "seen": when(each.seen_at, now), "charts": each.charts}
            for each in host_charts(window)
        ]
        context = {
            "window": window,
            "choices": list(CHOICES),
            "hosts": hosts,
            "start_command": f"{TYPED_PROGRAM} up",
        }
        return render(request, "drover/machine_charts.html", context | flower_of(request))

    def page(self, request: HttpRequest, worker: Any) -> dict[str, Any]:
        now = utc_now()
        runs = worker.runs.filter(slot__isnull=False).select_related("agent", "schedule")
        beats = worker.heartbeats.select_related("run").order_by("-id")[:LISTED_ROWS]
        return {
            "here": request.get_full_path(),
            **flower_of(request),
            "state": badge(worker_state(worker, now)),
            "slots": _bar(100 * worker.running / (worker.concurrency or 1), self.busy(worker)),
            "started": when(worker.started_at, now),
            "lease": when(worker.ended_at or worker.lease_until, now),
            "runs": run_summaries(runs.order_by("id"), now),
            "ended": _ended_here(worker, now),
            "heartbeats": [
                {
                    "id": beat.pk,
                    "run": link_to(beat.run),
                    "status": beat.status_text,
                    "badge": badge(beat.state),
                    "at": when(beat.at, now),
                }
                for beat in beats
            ],
        }

    @admin.display(description="State", ordering="state")
    def state_badge(self, worker: Worker) -> SafeString:
        return badge(worker_state(worker, utc_now()))

    @admin.display(description="Threads in use", ordering="running")
    def busy(self, worker: Any) -> str:
        return f"{worker.running} / {worker.concurrency}"

    @admin.display(ordering="started_at")
    def started(self, worker: Worker) -> SafeString:
        return when(worker.started_at, utc_now())

    @admin.display(description="Lease ends", ordering="lease_until")
    def lease(self, worker: Worker) -> SafeString:
        return when(worker.ended_at or worker.lease_until, utc_now())


def _ended_here(worker: Worker, now: datetime) -> list[RunSummary]:
    newest = Run.objects.aggregate(newest=Max("pk"))["newest"] or 0
    ended = worker.runs.filter(slot__isnull=True, pk__gt=newest - MOST_RUNS)
    return run_summaries(
        ended.select_related("agent", "schedule").order_by("-id")[:LISTED_ROWS], now
    )


@admin.register(MachineSnapshot)
class MachineSnapshotAdmin(RecordAdmin):
    list_before_template = "drover/machines.html"
    list_display = ["host", "taken", "cpu", "memory", "disk", "active_runs", "queue_depth"]
    list_filter = ["host"]
    ordering = ["-id"]

    @admin.display(ordering="at")
    def taken(self, snapshot: MachineSnapshot) -> SafeString:
        return when(snapshot.at, utc_now())

    @admin.display(description="CPU", ordering="cpu_percent")
    def cpu(self, snapshot: MachineSnapshot) -> SafeString:
        return _bar(snapshot.cpu_percent, f"{snapshot.cpu_percent:.0f} %")

    @admin.display(ordering="memory_used_mb")
    def memory(self, snapshot: MachineSnapshot) -> SafeString:
        total = snapshot.memory_total_mb or 1
        used_gb, total_gb = snapshot.memory_used_mb / 1000, total / 1000
        return _bar(100 * snapshot.memory_used_mb / total, f"{used_gb:.1f} / {total_gb:.1f} GB")

    @admin.display(description="Disk free", ordering="disk_free_mb")
    def disk(self, snapshot: MachineSnapshot) -> str:
        return f"{snapshot.disk_free_mb / 1000:.1f} GB"


def _bar(percent: float, text: str) -> SafeString:
    bar = '<span class="dv-slots"><span class="dv-bar"><i style="width:{}%"></i></span>{}</span>'
    return format_html(bar, min(100, round(percent)), text)


def _drain(_row: Scheduler, act: Act) -> str:
    shutdown.begin_drain(act.by, act.now, keep_queue=True)
    return "Draining: no new run starts, queued work is kept, Drover exits after the last run"


DRAIN = Verb(
    "drain",
    "Drain and stop",
    "stop_circle",
    _drain,
    lambda row: row.state == Scheduler.State.RUNNING,
    danger=True,
    effect="Lets running runs finish, then stops all processes.",
)


@admin.register(Scheduler)
class SchedulerAdmin(RecordAdmin):
    verbs = (DRAIN,)
    list_display = ["shown_state", "started", "last_check", "check_count", "trigger_count"]

    @admin.display(description="State")
    def shown_state(self, row: Scheduler) -> SafeString:
        return badge(scheduler_state(row, utc_now()))

    def started(self, row: Scheduler) -> SafeString:
        return when(row.started_at, utc_now())

    @admin.display(description="Last check for due schedules")
    def last_check(self, row: Scheduler) -> SafeString:
        return when(row.last_check_at, utc_now())


# --- charts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostCharts:
    host: str
    seen_at: datetime
    charts: Sequence[LineChart]


def host_charts(window: TimelineWindow) -> list[HostCharts]:
    """The hosts with the latest snapshots."""
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
        chart("CPU", points("cpu_percent"), window, unit="%", top=100),
        chart("Memory", memory, window, unit="%", top=100),
        chart("Disk free", points("disk_free_mb", 1000), window, unit="GB", digits=1, lowest=True),
        chart("Unfinished runs", points("active_runs"), window),
        chart("Queued work items", points("queue_depth"), window),
        chart("Workers", points("active_workers"), window),
    ]


# --- Flower ----------------------------------------------------------------------------------


def flower_of(request: HttpRequest) -> dict[str, Any]:
    """The context of drover/flower.html.

    Flower listens on loopback: the link is valid only in a browser on the same machine, other
    browsers are told the port.
    """
    if not CONF.flower:
        return {}
    url = f"http://127.0.0.1:{CONF.flower_port}" if _is_local(request) else ""
    return {"flower_url": url, "flower_port": CONF.flower_port}


def may_open_flower(request: HttpRequest) -> bool:
    """Whether the sidebar links to Flower."""
    return may_see(request, "worker") and _is_local(request)


def _is_local(request: HttpRequest) -> bool:
    host, _ = split_domain_port(request.get_host())
    return is_loopback(host)
