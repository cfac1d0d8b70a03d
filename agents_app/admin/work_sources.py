"""Pages of work sources with their queue, and of the claims on their items; read only."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import RecordAdmin, utc_now
from agents_app.admin.filters import AgentFilter
from agents_app.admin.formatting import NOTHING, badge, link, link_to, when
from agents_app.models import WorkClaim, WorkSource

MOST_SHOWN = 50
OPEN = ~Q(stage=WorkClaim.Stage.ENDED)


def _item_link(url: str, text: str) -> SafeString | str:
    """A link only to web pages: the address comes from another system."""
    return link(url, text) if url.startswith(("https://", "http://")) else text


@admin.register(WorkSource)
class WorkSourceAdmin(RecordAdmin):
    page_template = "drover/work_source.html"
    list_display = ["name", "type", "shown_state", "ready", "in_progress", "polled", "last_error"]
    list_filter = ["type"]
    search_fields = ["name"]
    ordering = ["name", "id"]
    fields = ["type", "name", "settings", "polled_at", "blocked_until", "failures", "last_error"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[WorkSource]:
        rows: QuerySet[WorkSource] = super().get_queryset(request)
        open_claims = ~Q(claims__stage=WorkClaim.Stage.ENDED) & Q(claims__isnull=False)
        return rows.annotate(open_claims=Count("claims", filter=open_claims))

    def page(self, _request: HttpRequest, source: WorkSource | None) -> dict[str, Any]:
        if source is None:
            return {}
        joined = source.claims.select_related("agent", "work_item").order_by("-id")
        current, ended = joined.filter(OPEN), joined.exclude(OPEN)
        return {
            "queue": [
                (_item_link(item["url"], item["title"] or item["id"]), item)
                for item in source.queue[:MOST_SHOWN]
            ],
            "queue_length": len(source.queue),
            "claims": [_row(claim) for claim in current[:MOST_SHOWN]],
            "outcomes": [_row(claim) for claim in ended[:MOST_SHOWN]],
        }

    @admin.display(description="State")
    def shown_state(self, source: WorkSource) -> SafeString:
        if source.blocked_until is not None and source.blocked_until > utc_now():
            return badge("paused", f"Nothing is requested until {source.blocked_until:%H:%M}")
        return badge("failed", source.last_error) if source.last_error else badge("active")

    @admin.display(description="Ready")
    def ready(self, source: WorkSource) -> int:
        return len(source.queue)

    @admin.display(description="In progress")
    def in_progress(self, source: Any) -> int:
        return int(source.open_claims)

    @admin.display(description="Last poll", ordering="polled_at")
    def polled(self, source: WorkSource) -> SafeString:
        return when(source.polled_at, utc_now())


def _row(claim: WorkClaim) -> dict[str, Any]:
    return {
        "item": _item_link(claim.url, claim.title or claim.item_id),
        "claim": link_to(claim),
        "agent": link_to(claim.agent),
        "work": link_to(claim.work_item),
        "state": badge(claim.outcome or claim.stage, claim.last_error),
        "since": when(claim.ended_at or claim.created_at, utc_now()),
        "error": claim.last_error,
    }


@admin.register(WorkClaim)
class WorkClaimAdmin(RecordAdmin):
    list_display = ["item", "source", "agent", "shown_state", "work", "since", "last_error"]
    list_filter = ["stage", "outcome", "source", ("agent", AgentFilter)]
    list_select_related = ["source", "agent", "work_item"]
    search_fields = ["title", "item_id"]
    ordering = ["-id"]
    fields = [
        *("item", "item_id", "source", "agent", "stage", "outcome", "work", "created_at"),
        *("ended_at", "failed_attempts", "tries", "next_try_at", "last_error"),
    ]

    def item(self, claim: WorkClaim) -> SafeString | str:
        return _item_link(claim.url, claim.title or claim.item_id)

    @admin.display(description="State")
    def shown_state(self, claim: WorkClaim) -> SafeString:
        return badge(claim.outcome or claim.stage)

    @admin.display(description="Work item")
    def work(self, claim: WorkClaim) -> SafeString:
        return link_to(claim.work_item) if claim.work_item else NOTHING

    @admin.display(description="Since", ordering="created_at")
    def since(self, claim: WorkClaim) -> SafeString:
        return format_html("{}", when(claim.ended_at or claim.created_at, utc_now()))
