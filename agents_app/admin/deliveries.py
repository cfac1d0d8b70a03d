"""Pages of deliveries: content, decisions for each agent, replay, and a test page for payloads."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from unfold.decorators import action

from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.delivery_body import shown_body
from agents_app.admin.formatting import badge, when
from agents_app.admin.payload_test import PayloadTestForm, form_of
from agents_app.models import Delivery, Run, WorkItem
from agents_app.webhooks import deliveries, headers_of

# Each replay is its own commit; more would exceed the time of a request.
MOST_AT_ONCE = 100
MOST_WORK = 50


def _replay(delivery: Delivery, act: Act) -> str:
    receipt = deliveries.replay(delivery, act.by, act.now)
    return f"{delivery} replayed: {receipt.matched} matched, {receipt.skipped} skipped"


REPLAY = Verb(
    *("replay", "Replay", "replay", _replay),
    fits=lambda delivery: delivery.outcome != Delivery.Outcome.REFUSED,
)


@admin.register(Delivery)
class DeliveryAdmin(RecordAdmin):
    verbs = (REPLAY,)
    page_template = "drover/delivery.html"
    list_before_template = "drover/live_list.html"
    live_events = "work run delivery"
    list_display = [
        "number",
        "received",
        "source",
        "event_and_action",
        "shown_outcome",
        "agents",
        "reason",
    ]
    list_filter = ["outcome", "source", "provider"]
    list_select_related = ["source"]
    search_fields = ["=id", "=delivery_id", "event"]
    ordering = ["-id"]
    actions_list = ["test_payload"]
    record = [
        *("source", "provider", "delivery_id", "signed_by", "event", "action", "outcome", "reason"),
        *("matched", "skipped", "received_at", "replays", "replayed_at"),
    ]
    fieldsets = [("Record", {"fields": record, "classes": ["collapse"]})]

    class Media:
        css = {"all": ["drover/delivery.css"]}
        js = ["drover/live_list.js"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        rows: QuerySet[Delivery] = super().get_queryset(request)
        # Bodies may have megabytes: only the page of one delivery reads them.
        return rows.defer("body", "headers", "decisions", "context")

    def perform(self, request: HttpRequest, verb: Verb, rows: Iterable[Model]) -> Model | None:
        chosen = list(rows)
        if len(chosen) > MOST_AT_ONCE:
            text = f"{len(chosen)} deliveries selected: select at most {MOST_AT_ONCE}"
            self.message_user(request, text, messages.ERROR)
            return None
        return super().perform(request, verb, chosen)

    # --- pages ------------------------------------------------------------------------------

    def page(self, _request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        return {
            "received": when(delivery.received_at, utc_now()),
            "outcome": badge(delivery.outcome),
            "event": self.event_and_action(delivery),
            "decisions": json.loads(delivery.decisions),
            "headers": headers_of(delivery),
            "body": shown_body(json.loads(delivery.headers), bytes(delivery.body)),
            "size": len(delivery.body),
            "work": _work_of(delivery),
            "most_work": MOST_WORK,
        }

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.body_view)
        return [path("<int:key>/body/", view, name="agents_app_delivery_body"), *super().get_urls()]

    def body_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """The raw body as a download, so that no browser interprets it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        delivery = Delivery.objects.filter(pk=key).only("body").first()
        if delivery is None:
            raise Http404
        response = HttpResponse(bytes(delivery.body), content_type="application/octet-stream")
        response["Content-Disposition"] = f'attachment; filename="delivery-{key}.bin"'
        return response

    @action(  # type: ignore[untyped-decorator]
        description="Test a payload", url_path="test", permissions=["view"], icon="science"
    )
    def test_payload(self, request: HttpRequest) -> HttpResponse:
        """Shows which agents a payload would start and why others are skipped; starts nothing."""
        if request.method == "POST":
            form = PayloadTestForm(request.POST)
            results = form.results(utc_now()) if form.is_valid() else []
        else:
            form, results = form_of(request.GET), []
        site = {**self.admin_site.each_context(request), "media": self.media}
        shown = {"title": "Test a payload", "form": form, "results": results}
        return TemplateResponse(request, "drover/payload_test.html", site | shown)

    # --- columns ----------------------------------------------------------------------------

    @admin.display(description="Delivery", ordering="id")
    def number(self, delivery: Delivery) -> str:
        return f"#{delivery.pk}"

    @admin.display(ordering="id")
    def received(self, delivery: Delivery) -> SafeString:
        return when(delivery.received_at, utc_now())

    @admin.display(description="Event", ordering="event")
    def event_and_action(self, delivery: Delivery) -> str:
        return f"{delivery.event} {delivery.action}".strip() or "-"

    @admin.display(description="Outcome", ordering="outcome")
    def shown_outcome(self, delivery: Delivery) -> SafeString:
        return badge(delivery.outcome, delivery.reason)

    @admin.display(description="Agents")
    def agents(self, delivery: Delivery) -> str:
        replayed = f", replayed {delivery.replays} x" if delivery.replays else ""
        return f"{delivery.matched} of {delivery.matched + delivery.skipped}{replayed}"


def _work_of(delivery: Delivery) -> list[tuple[WorkItem, list[Run]]]:
    """The latest work items of the delivery and its replays, each with its runs; two queries."""
    items = deliveries.work_of(delivery).defer("prompt", "context")
    latest = list(items.order_by("-pk")[:MOST_WORK])
    runs: dict[int, list[Run]] = {item.pk: [] for item in latest}
    for run in Run.objects.filter(work_item__in=latest).order_by("pk"):
        runs[run.work_item_id].append(run)
    return [(item, runs[item.pk]) for item in latest]
