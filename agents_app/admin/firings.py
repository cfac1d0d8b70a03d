"""The ledger: every instant that came due and what became of it; nothing is changed here."""

from django.contrib import admin
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.show import badge, link_to, rough, when
from agents_app.models import Firing


@admin.register(Firing)
class FiringAdmin(RecordAdmin):
    list_display = ["due", "schedule", "shown_outcome", "reason", "late", "work"]
    list_filter = ["outcome", "reason"]
    list_select_related = ["schedule__agent", "work_item"]
    search_fields = ["schedule__name", "schedule__agent__name"]
    ordering = ["-id"]
    fields = ["schedule", "due_at", "recorded_at", "outcome", "reason", "work"]

    @admin.display(ordering="due_at")
    def due(self, firing: Firing) -> SafeString:
        return when(firing.due_at, utc_now())

    @admin.display(description="Outcome", ordering="outcome")
    def shown_outcome(self, firing: Firing) -> SafeString:
        return badge(firing.outcome or "undecided", firing.reason)

    @admin.display(description="Recorded after")
    def late(self, firing: Firing) -> str:
        return rough(max(0.0, firing.late_seconds))

    @admin.display(description="Work item")
    def work(self, firing: Firing) -> SafeString:
        return link_to(getattr(firing, "work_item", None))
