"""Pages of firings: every due time with its outcome; read only."""

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.filters import AgentFilter
from agents_app.admin.formatting import NOTHING, badge, duration, exact, link_to, when
from agents_app.admin.summaries import run_outcome
from agents_app.models import Firing, Run
from agents_app.schedules import explain_outcome
from agents_app.triggers import LATE


@admin.register(Firing)
class FiringAdmin(RecordAdmin):
    list_display = ["due", "schedule", "shown_outcome", "why", "decided", "run"]
    list_filter = ["outcome", "reason", "recorded_at", ("schedule__agent", AgentFilter)]
    list_before_template = "drover/live_list.html"
    live_events = "firing run work schedule"
    list_select_related = ["schedule__agent"]
    search_fields = ["schedule__name", "schedule__agent__name"]
    ordering = ["-id"]
    fields = [
        *("schedule", "due_at", "recorded_at", "decide_at", "decided"),
        *("outcome", "why", "work", "run"),
    ]

    class Media:
        js = ["drover/live_list.js"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Firing]:
        runs = Run.objects.filter(work_item__firing=OuterRef("pk")).order_by("-id")
        firings: QuerySet[Firing] = super().get_queryset(request)
        return firings.annotate(
            run_id=Subquery(runs.values("pk")[:1]),
            run_state=Subquery(runs.values("state")[:1]),
            run_at=Subquery(runs.values("created_at")[:1]),
        )

    def row_name(self, row: Firing) -> str:
        return f"{row.schedule} at {exact(row.due_at)}"

    @admin.display(ordering="due_at")
    def due(self, firing: Firing) -> SafeString:
        return when(firing.due_at, utc_now())

    @admin.display(description="Outcome", ordering="outcome")
    def shown_outcome(self, firing: Firing) -> SafeString:
        return badge(firing.outcome or "undecided")

    @admin.display(description="Reason", ordering="reason")
    def why(self, firing: Firing) -> str:
        return capfirst(explain_outcome(firing, firing.schedule.timezone))

    @admin.display(description="Decided")
    def decided(self, firing: Firing) -> SafeString:
        """The delay after the due time, caused by jitter or by a late check."""
        after = max(firing.recorded_at, firing.decide_at) - firing.due_at
        late = badge("late") if firing.recorded_at - firing.due_at > LATE else ""
        return format_html("{} later {}", duration(max(0.0, after.total_seconds())), late)

    @admin.display(description="Work item")
    def work(self, firing: Firing) -> SafeString:
        return link_to(getattr(firing, "work_item", None))

    def run(self, firing: Any) -> SafeString:
        if firing.run_id is None:
            return NOTHING
        return run_outcome(firing.run_id, firing.run_state, firing.run_at, utc_now())
