"""Runs: what happened, what was printed, and two things to do about it: stop and rerun."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from agents_app.admin.base import Act, RecordAdmin, Verb, may_see, utc_now
from agents_app.admin.causes import nested
from agents_app.admin.filters import AGENT
from agents_app.admin.lines import RunLine
from agents_app.admin.log import end_of_log, requested_lines
from agents_app.admin.run_facts import RunFacts
from agents_app.admin.show import badge
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import Run, WorkItem
from agents_app.output import whole_text
from agents_app.reports import cause_tree
from agents_app.runs import control, dispatch

# A run that calls a thousand others has thousands; the journal has them all.
MOST_EVENTS = 200

# --- verbs ----------------------------------------------------------------------------------


def _stop(run: Run, act: Act) -> str:
    if not control.stop_run(run, act.by, act.now):
        raise Refused("it is being stopped already")
    return f"{run} is being stopped"


def _rerun(run: Run, act: Act) -> str:
    item = dispatch.rerun(run, act.by, act.now)
    waits = item.state == WorkItem.State.QUEUED
    return f"{run} is run again as {item}" + (", which waits in the queue" if waits else "")


STOP = Verb(
    *("stop", "Stop", "stop", _stop, lambda run: run.slot is not None),
    danger=True,
    effect=f"Everything it started is told to end, and killed after {CONF.grace_seconds:g} s.",
)
RERUN = Verb(
    *("rerun", "Rerun", "replay", _rerun),
    effect="The same input becomes new work; this run and its log stay as they are.",
)


# --- pages ----------------------------------------------------------------------------------


@admin.register(Run)
class RunAdmin(RecordAdmin):
    verbs = (STOP, RERUN)
    page_template = "drover/run.html"
    list_display = ["number", "agent", "shown_state", "why", "began", "duration", "exit_code"]
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
            path("<int:run_id>/story/", self._view(self.story), name="agents_app_run_story"),
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
        parts = self._facts(request, run) | self._story(request, run)
        return parts | {"log": end_of_log(run), "own_buttons": True}

    def facts(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Asked for again and again while the run goes on; its log is a stream."""
        run = self.readable(request, run_id)
        context = self._facts(request, run) | {"act_buttons": self.buttons(request, run)}
        return render(request, "drover/run_facts.html", context)

    def story(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Asked for again when something has happened."""
        run = self.readable(request, run_id)
        return render(request, "drover/run_story.html", self._story(request, run))

    def lines(self, request: HttpRequest, run_id: int) -> HttpResponse:
        return JsonResponse(requested_lines(request, self.readable(request, run_id)))

    def text(self, request: HttpRequest, run_id: int) -> HttpResponse:
        text = whole_text(self.readable(request, run_id).pk)
        response = HttpResponse(text, content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="run-{run_id}.txt"'
        return response

    def _facts(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        now = utc_now()
        facts = {"original": run, "line": RunLine(run, now), "facts": RunFacts(run, now)}
        # It was written to the work item, which not all who see runs may read.
        return facts | ({"prompt": run.work_item.prompt} if may_see(request, "workitem") else {})

    def _story(self, request: HttpRequest, run: Run) -> dict[str, Any]:
        story = {"original": run, "causes": nested((cause_tree(run),))}
        events = run.events.order_by("-id")[:MOST_EVENTS]
        return story | ({"events": events} if may_see(request, "runevent") else {})

    @admin.display(description="Run", ordering="id")
    def number(self, run: Run) -> str:
        return f"#{run.pk}"

    @admin.display(description="State", ordering="state")
    def shown_state(self, run: Run) -> SafeString:
        return badge(run.state, run.error)

    @admin.display(description="Trigger", ordering="trigger")
    def why(self, run: Run) -> str:
        return RunLine(run, utc_now()).trigger

    @admin.display(ordering="started_at")
    def began(self, run: Run) -> SafeString:
        return RunLine(run, utc_now()).began

    def duration(self, run: Run) -> str:
        return RunLine(run, utc_now()).lasted
