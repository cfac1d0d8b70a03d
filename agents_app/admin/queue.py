"""The queue: work items, those that wait first; they can be dropped and restored."""

from typing import Any

from django.contrib import admin
from django.db.models import Case, Value, When
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app import control
from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.filters import AGENT
from agents_app.admin.lines import run_lines
from agents_app.admin.show import badge, when
from agents_app.errors import Refused
from agents_app.models import WorkItem

S = WorkItem.State


# --- verbs ----------------------------------------------------------------------------------


def _drop(item: WorkItem, act: Act) -> str:
    if not control.drop_work(item, act.by, act.now):
        raise Refused("only waiting work can be dropped")
    return f"{item} of {item.agent} was dropped; Restore brings it back"


def _restore(item: WorkItem, act: Act) -> str:
    if not control.restore_work(item, act.by, act.now):
        raise Refused("only dropped or cleared work can be restored")
    return f"{item} of {item.agent} is back in the queue"


DROP = Verb("drop", "Drop", "delete", _drop, lambda item: item.state == S.QUEUED, danger=True)
RESTORE = Verb(
    "restore", "Restore", "undo", _restore, lambda item: item.state in control.RESTORABLE
)


# --- pages ----------------------------------------------------------------------------------

# What waits, then what runs, then the rest.
RANK = Case(When(state=S.QUEUED, then=Value(0)), When(state=S.ADMITTED, then=Value(1)), default=2)


@admin.register(WorkItem)
class WorkItemAdmin(RecordAdmin):
    verbs = (DROP, RESTORE)
    page_template = "drover/work_item.html"
    list_display = ["item", "agent", "shown_state", "reason", "trigger", "requested_by", "created"]
    list_filter = ["state", "trigger", AGENT]
    list_select_related = ["agent"]
    ordering = [RANK, "-id"]
    search_fields = ["=id", "agent__name", "requested_by", "prompt"]
    fieldsets = [
        (None, {"fields": ["agent", "state", "reason", "trigger", "requested_by", "attempts"]}),
        ("Input", {"fields": ["prompt", "context"]}),
        (
            "Record",
            {
                "fields": [
                    *("schedule", "firing", "idempotency_key", "trace_id"),
                    *("created_at", "available_at", "finished_at"),
                ]
            },
        ),
    ]

    def page(self, _request: HttpRequest, item: WorkItem) -> dict[str, Any]:
        runs = item.runs.select_related("agent", "schedule").order_by("-id")
        return {"runs": run_lines(runs, utc_now())}

    @admin.display(description="Work", ordering="id")
    def item(self, item: WorkItem) -> str:
        return f"#{item.pk}"

    @admin.display(description="State", ordering=RANK)
    def shown_state(self, item: WorkItem) -> SafeString:
        return badge(item.state, item.reason)

    @admin.display(ordering="created_at")
    def created(self, item: WorkItem) -> SafeString:
        return when(item.created_at, utc_now())
