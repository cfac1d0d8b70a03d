"""Pages of the queue: work items, queued ones first, with the verbs drop and restore."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.paginator import Page
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, EntryPaginator, RecordAdmin, Verb, utc_now
from agents_app.admin.filters import AGENT
from agents_app.admin.formatting import badge, when
from agents_app.admin.summaries import run_summaries
from agents_app.errors import Refused
from agents_app.models import WorkItem
from agents_app.runs import control, waits_because, why_waiting

S = WorkItem.State


# --- verbs ----------------------------------------------------------------------------------


def _drop(item: WorkItem, act: Act) -> str:
    if not control.drop_work(item, act.by, act.now):
        raise Refused("only queued work items can be dropped")
    return f"{item} of {item.agent} dropped; Restore puts it back into the queue"


def _restore(item: WorkItem, act: Act) -> str:
    if not control.restore_work(item, act.by, act.now):
        raise Refused("only dropped or cleared work items can be restored")
    return f"{item} of {item.agent} restored to the queue"


DROP = Verb("drop", "Drop", "delete", _drop, lambda item: item.state == S.QUEUED, danger=True)
RESTORE = Verb(
    "restore", "Restore", "undo", _restore, lambda item: item.state in control.RESTORABLE
)


# --- pages ----------------------------------------------------------------------------------

# Queued, then running, then finished.
RANK = Case(When(state=S.QUEUED, then=Value(0)), When(state=S.ADMITTED, then=Value(1)), default=2)
OPEN = (S.QUEUED, S.ADMITTED)


class QueueFilter(admin.SimpleListFilter):
    """Without a choice the list has only queued work items; a search finds those in any state."""

    title = "state"
    parameter_name = "state__exact"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        finished = [(value, label) for value, label in S.choices if value != S.QUEUED]
        return [*finished, ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        default, *others = super().choices(changelist)
        return [{**default, "display": S.QUEUED.label}, *others]

    def value(self) -> str | None:
        chosen = super().value()
        return None if chosen == S.QUEUED else chosen

    def queryset(self, request: HttpRequest, work: QuerySet[WorkItem]) -> QuerySet[WorkItem]:
        unchosen = "all" if request.GET.get(SEARCH_VAR) else S.QUEUED.value
        chosen = self.value() or unchosen
        return work if chosen == "all" else work.filter(state=chosen)


class OpenFirst(EntryPaginator):
    """Pages in the order of RANK without sorting the whole table: an index finds the open work
    items, and the others are ordered by key."""

    def page(self, number: int | str) -> Any:
        work: Any = self.object_list
        if work.query.order_by[:1] != (RANK,):
            return super().page(number)
        number = self.validate_number(number)
        skipped = (number - 1) * self.per_page
        unfinished = work.filter(state__in=OPEN)
        shown = list(unfinished[skipped : skipped + self.per_page])
        if missing := self.per_page - len(shown):
            before = max(0, skipped - unfinished.count())
            rest = work.exclude(state__in=OPEN).order_by("-id")
            shown += rest[before : before + missing]
        return Page(shown, number, self)


@admin.register(WorkItem)
class WorkItemAdmin(RecordAdmin):
    paginator = OpenFirst
    verbs = (DROP, RESTORE)
    page_template = "drover/work_item.html"
    list_display = ["item", "agent", "shown_state", "because", "trigger", "requested_by", "created"]
    list_filter = [QueueFilter, "trigger", AGENT]
    list_select_related = ["agent__tenant"]
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
        waits = why_waiting(item) if item.state == S.QUEUED else ""
        return {"runs": run_summaries(runs, utc_now()), "waits_because": waits}

    @admin.display(description="Work item", ordering="id")
    def item(self, item: WorkItem) -> str:
        return f"#{item.pk}"

    @admin.display(description="State", ordering=RANK)
    def shown_state(self, item: WorkItem) -> SafeString:
        return badge(item.state, item.reason)

    @admin.display(description="Reason", ordering="reason")
    def because(self, item: WorkItem) -> str:
        """Why the item waits, or why it ended without a run."""
        return waits_because(item) if item.state == S.QUEUED else item.reason

    @admin.display(ordering="created_at")
    def created(self, item: WorkItem) -> SafeString:
        return when(item.created_at, utc_now())
