"""The queue: work items, those that wait first; they can be dropped and restored."""

from typing import Any

from django.contrib import admin
from django.core.paginator import Page, Paginator
from django.db.models import Case, Value, When
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.filters import AGENT
from agents_app.admin.lines import run_lines
from agents_app.admin.show import badge, when
from agents_app.errors import Refused
from agents_app.models import WorkItem
from agents_app.runs import control

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
OPEN = (S.QUEUED, S.ADMITTED)


class OpenFirst(Paginator):  # type: ignore[type-arg]
    """Pages in the order of RANK, without sorting all that was ever done: what is open is in an
    index of its own, and the rest has the order of its keys."""

    def page(self, number: int | str) -> Any:
        work: Any = self.object_list
        if work.query.order_by[:1] != (RANK,):
            return super().page(number)
        number = self.validate_number(number)
        skipped = (number - 1) * self.per_page
        going_on = work.filter(state__in=OPEN)
        shown = list(going_on[skipped : skipped + self.per_page])
        if missing := self.per_page - len(shown):
            before = max(0, skipped - going_on.count())
            rest = work.exclude(state__in=OPEN).order_by("-id")
            shown += rest[before : before + missing]
        return Page(shown, number, self)


@admin.register(WorkItem)
class WorkItemAdmin(RecordAdmin):
    paginator = OpenFirst
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
                    *("schedule", "firing", "delivery", "rule", "rerun_of", "parent_run"),
                    *("idempotency_key", "trace_id"),
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
