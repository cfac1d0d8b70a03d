"""The queue: work items, those that wait first; they can be dropped and restored."""

from typing import Any

from django.contrib import admin
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app import dispatch, lifecycle
from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.lines import run_lines
from agents_app.admin.show import badge, when
from agents_app.commit import in_transaction
from agents_app.errors import Refused
from agents_app.models import WorkItem

S = WorkItem.State


# --- verbs ----------------------------------------------------------------------------------


def _drop(item: WorkItem, act: Act) -> str:
    reason = f"dropped by {act.by}"
    if not in_transaction(lambda: lifecycle.drop(item.pk, act.now, reason)):
        raise Refused("only waiting work can be dropped")
    return f"{item} of {item.agent} was dropped; Restore brings it back"


def _restore(item: WorkItem, act: Act) -> str:
    was = item.state
    if not in_transaction(lambda: was in RESTORABLE and lifecycle.restore(item.pk, was, act.now)):
        raise Refused("only dropped or cleared work can be restored")
    dispatch.admit_waiting(item.agent_id, act.now)
    return f"{item} of {item.agent} is back in the queue"


RESTORABLE = frozenset({S.DROPPED, S.CLEARED})
DROP = Verb("drop", "Drop", "delete", _drop, lambda item: item.state == S.QUEUED, danger=True)
RESTORE = Verb("restore", "Restore", "undo", _restore, lambda item: item.state in RESTORABLE)


# --- pages ----------------------------------------------------------------------------------

# In the order in which people want to see them.
_ORDER = {S.QUEUED: 0, S.ADMITTED: 1}


@admin.register(WorkItem)
class WorkItemAdmin(RecordAdmin):
    verbs = (DROP, RESTORE)
    page_template = "drover/work_item.html"
    list_display = ["item", "agent", "shown_state", "reason", "trigger", "requested_by", "created"]
    list_filter = ["state", "trigger", "agent"]
    list_select_related = ["agent"]
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkItem]:
        ranks = [When(state=state, then=Value(rank)) for state, rank in _ORDER.items()]
        rank = Case(*ranks, default=Value(len(_ORDER)), output_field=IntegerField())
        items: QuerySet[WorkItem] = super().get_queryset(request).annotate(rank=rank)
        return items

    def get_ordering(self, _request: HttpRequest) -> list[str]:
        return ["rank", "-id"]

    def page(self, _request: HttpRequest, item: WorkItem) -> dict[str, Any]:
        runs = item.runs.select_related("agent", "schedule").order_by("-id")
        return {"runs": run_lines(runs, utc_now())}

    @admin.display(description="Work", ordering="id")
    def item(self, item: WorkItem) -> str:
        return f"#{item.pk}"

    @admin.display(description="State", ordering="rank")
    def shown_state(self, item: WorkItem) -> SafeString:
        return badge(item.state, item.reason)

    @admin.display(ordering="created_at")
    def created(self, item: WorkItem) -> SafeString:
        return when(item.created_at, utc_now())
