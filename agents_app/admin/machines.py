"""The machinery: workers, what beat says of itself, how the hosts are doing."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.lines import count_by, run_lines
from agents_app.admin.show import badge, when
from agents_app.models import MachineSnapshot, Run, Scheduler, Worker


def worker_state(worker: Worker, now: datetime) -> str:
    """A worker that stopped renewing is not alive, whatever its row still says."""
    silent = worker.ended_at is None and worker.lease_until < now
    return "silent" if silent else str(worker.state)


@admin.register(Worker)
class WorkerAdmin(RecordAdmin):
    page_template = "drover/worker.html"
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

    def page(self, _request: HttpRequest, worker: Worker) -> dict[str, Any]:
        runs = worker.runs.filter(slot__isnull=False).select_related("agent", "schedule")
        return {"runs": run_lines(runs.order_by("id"), utc_now())}

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


@admin.register(MachineSnapshot)
class MachineSnapshotAdmin(RecordAdmin):
    list_display = ["host", "taken", "cpu", "memory", "disk", "active_runs", "queue_depth"]
    list_filter = ["host"]
    ordering = ["-id"]

    @admin.display(ordering="at")
    def taken(self, snapshot: MachineSnapshot) -> SafeString:
        return when(snapshot.at, utc_now())

    @admin.display(ordering="cpu_percent")
    def cpu(self, snapshot: MachineSnapshot) -> SafeString:
        return _bar(snapshot.cpu_percent, f"{snapshot.cpu_percent:.0f} %")

    @admin.display(ordering="memory_used_mb")
    def memory(self, snapshot: MachineSnapshot) -> SafeString:
        total = snapshot.memory_total_mb or 1
        used, all_of_it = snapshot.memory_used_mb / 1000, total / 1000
        return _bar(100 * snapshot.memory_used_mb / total, f"{used:.1f} / {all_of_it:.1f} GB")

    @admin.display(description="Disk free", ordering="disk_free_mb")
    def disk(self, snapshot: MachineSnapshot) -> str:
        return f"{snapshot.disk_free_mb / 1000:.1f} GB"


def _bar(percent: float, text: str) -> SafeString:
    bar = '<span class="dv-slots"><span class="dv-bar"><i style="width:{}%"></i></span>{}</span>'
    return format_html(bar, min(100, round(percent)), text)


@admin.register(Scheduler)
class SchedulerAdmin(RecordAdmin):
    list_display = ["shown_state", "started", "looked", "check_count", "trigger_count"]

    @admin.display(description="State")
    def shown_state(self, row: Scheduler) -> SafeString:
        return badge(row.state)

    def started(self, row: Scheduler) -> SafeString:
        return when(row.started_at, utc_now())

    @admin.display(description="Last look for due schedules")
    def looked(self, row: Scheduler) -> SafeString:
        return when(row.last_check_at, utc_now())
