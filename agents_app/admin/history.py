"""Pages of events, usage and heartbeats; read only."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.formatting import badge, link_to, when
from agents_app.models import Heartbeat, RunEvent, Usage


@admin.register(RunEvent)
class RunEventAdmin(RecordAdmin):
    list_display = ["name", "time", "agent", "of_run", "detail"]
    # Events without a run are actions of people. A filter by name would read the whole table.
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


@admin.register(Usage)
class UsageAdmin(RecordAdmin):
    list_display = ["day", "of_agent", "tokens_used", "cost"]
    list_select_related = ["agent"]
    search_fields = ["agent__name"]
    ordering = ["-day", "agent__name"]
    fields = ["agent", "day", "tokens", "cost_usd"]

    @admin.display(description="Agent", ordering="agent__name")
    def of_agent(self, usage: Usage) -> SafeString:
        return link_to(usage.agent)

    @admin.display(description="Tokens", ordering="tokens")
    def tokens_used(self, usage: Usage) -> str:
        return f"{usage.tokens:,}"

    @admin.display(description="Cost", ordering="cost_usd")
    def cost(self, usage: Usage) -> str:
        return f"${usage.cost_usd:.2f}"


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
