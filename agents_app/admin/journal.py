"""What happened, in order, and the signs of life of runs; nothing is changed here."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.show import badge, link_to, when
from agents_app.models import Heartbeat, RunEvent


@admin.register(RunEvent)
class RunEventAdmin(RecordAdmin):
    list_display = ["name", "time", "agent", "of_run", "detail"]
    # Without a run it is an act of a person. A filter by name would read the whole table.
    list_filter = [("run", admin.EmptyFieldListFilter)]
    list_select_related = ["agent", "run"]
    search_fields = ["agent__name", "detail", "=run__id"]
    ordering = ["-id"]
    fields = ["name", "at", "agent", "run", "detail"]

    @admin.display(ordering="at")
    def time(self, event: RunEvent) -> SafeString:
        return when(event.at, utc_now())

    @admin.display(description="Run")
    def of_run(self, event: RunEvent) -> SafeString:
        return link_to(event.run)


@admin.register(Heartbeat)
class HeartbeatAdmin(RecordAdmin):
    list_display = ["of_run", "state_badge", "time", "worker", "status_text", "last_line"]
    list_filter = ["state"]
    list_select_related = ["run", "worker"]
    search_fields = ["=run__id", "status_text"]
    ordering = ["-id"]
    fields = ["run", "worker", "state", "at", "status_text", "last_output"]

    @admin.display(description="Run", ordering="run")
    def of_run(self, heartbeat: Heartbeat) -> str:
        return str(heartbeat.run)

    @admin.display(description="State", ordering="state")
    def state_badge(self, heartbeat: Heartbeat) -> SafeString:
        return badge(heartbeat.state)

    @admin.display(ordering="at")
    def time(self, heartbeat: Heartbeat) -> SafeString:
        return when(heartbeat.at, utc_now())

    @admin.display(description="Last line")
    def last_line(self, heartbeat: Heartbeat) -> str:
        lines = heartbeat.last_output.strip().splitlines()
        return lines[-1][:120] if lines else ""
