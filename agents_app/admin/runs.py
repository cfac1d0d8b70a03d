"""Pages of runs: facts, log, trigger and calls, events, and the verbs stop and rerun."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, Done, RecordAdmin, Verb, may_see, utc_now
from agents_app.admin.filters import AGENT
from agents_app.admin.formatting import badge, link_to
from agents_app.admin.log import end_of_log, requested_lines
from agents_app.admin.run_page import RunFacts, nested_list
from agents_app.admin.summaries import RunSummary
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import Run
from agents_app.output import whole_text
from agents_app.reports import read_cause_tree
from agents_app.runs import control, dispatch

# A run with a thousand calls has thousands of events; the page of events lists them all.
MOST_EVENTS = 200

# --- verbs ----------------------------------------------------------------------------------


def _stop(run: Run, act: Act) -> str:
    if not control.stop_run(run, act.by, act.now):
        raise Refused("already being stopped")
    return f"Stopping {run}"


def _rerun(run: Run, act: Act) -> Done:
    item = dispatch.enqueue_rerun(run, act.by, act.now)
    made = item.runs.order_by("-pk").first() or item
    return Done(format_html("Rerun queued: {}", link_to(made)), made)


STOP = Verb(
    *("stop", "Stop", "stop", _stop, lambda run: run.slot is not None),
    danger=True,
    effect=f"Ends the run and all its processes; kills them after {CONF.grace_seconds:g} s.",
)
RERUN = Verb(
    *("rerun", "Rerun", "replay", _rerun),
    effect="Queues the same input as a new work item; this run and its log are kept.",
)


# --- pages ----------------------------------------------------------------------------------


@admin.register(Run)
class RunAdmin(RecordAdmin):
    verbs = (STOP, RERUN)
    page_template = "drover/run.html"
    list_display = [
        "number",
        "agent",
        "shown_state",
        "trigger_text",
        "started",
        "duration",
        "exit_code",
    ]
    list_filter = ["state", "trigger", AGENT]
    search_fields = ["=id", "agent__name", "error", "requested_by", "=trace_id"]
    ordering = ["-id"]
    fieldsets = [
        (
            "All columns",
            {
                "fields": [
                    *("agent", "schedule", "work_item", "parent_run", "trigger", "requested_by"),
                    *("worker", "pid", "container", "attempt", "rerun", "depth", "exit_code"),
                    *("error", "status_text", "result_summary", "output_bytes"),
                    *("output_cut_bytes", "trace_id"),
                    *("tokens_in", "tokens_out", "tokens_cache", "cost_usd"),
                    *("created_at", "hinted_at", "started_at", "deadline_at"),
                    *("stop_requested_at", "finished_at"),
                ],
                "classes": ["collapse"],
            },
        )
    ]

    class Media:
        css = {"all": ["drover/run.css"]}
        js = [Script("drover/log/log.js", type="module")]

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("<int:run_id>/facts/", self._view(self.facts), name="agents_app_run_facts"),
            path("<int:run_id>/events/", self._view(self.events), name="agents_app_run_events"),
            path("<int:run_id>/lines/", self._view(self.lines), name="agents_app_run_lines"),
            path("<int:run_id>/output.txt", self._view(self.text), name="agents_app_run_text"),
        ]
        return own + super().get_urls()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs: QuerySet[Run] = super().get_queryset(request)
        return runs.select_related("agent", "schedule", "worker", "work_item")

    def _view(self, view: Any) -> Any:
        return self.admin_site.admin_view(view)

    def page(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        parts = self._facts(request, run) | self._events(request, run)
        return parts | {"log": end_of_log(run), "own_buttons": True}

    def facts(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The facts, reloaded while the run is unfinished; the log is a stream."""
        run = self.readable(request, run_id)
        context = self._facts(request, run) | {"act_buttons": self.buttons(request, run)}
        return render(request, "drover/run_facts.html", context)

    def events(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Trigger, calls and events, reloaded when an event of the run arrives."""
        run = self.readable(request, run_id)
        return render(request, "drover/run_events.html", self._events(request, run))

    def lines(self, request: HttpRequest, run_id: int) -> HttpResponse:
        return JsonResponse(requested_lines(request, self.readable(request, run_id)))

    def text(self, request: HttpRequest, run_id: int) -> HttpResponse:
        text = whole_text(self.readable(request, run_id).pk)
        response = HttpResponse(text, content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="run-{run_id}.txt"'
        return response

    def _facts(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        now = utc_now()
        facts = {"original": run, "summary": RunSummary(run, now), "facts": RunFacts(run, now)}
        # The prompt belongs to the work item, which requires its own permission.
        return facts | ({"prompt": run.work_item.prompt} if may_see(request, "workitem") else {})

    def _events(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        context = {"original": run, "causes": nested_list((read_cause_tree(run),))}
        events = run.events.order_by("-id")[:MOST_EVENTS]
        return context | ({"events": events} if may_see(request, "runevent") else {})

    @admin.display(description="Run", ordering="id")
    def number(self, run: Run) -> str:
        return f"#{run.pk}"

    @admin.display(description="State", ordering="state")
    def shown_state(self, run: Run) -> SafeString:
        return badge(run.state, run.error)

    @admin.display(description="Trigger", ordering="trigger")
    def trigger_text(self, run: Run) -> str:
        return RunSummary(run, utc_now()).trigger

    @admin.display(ordering="started_at")
    def started(self, run: Run) -> SafeString:
        return RunSummary(run, utc_now()).started

    def duration(self, run: Run) -> str:
        return RunSummary(run, utc_now()).duration
