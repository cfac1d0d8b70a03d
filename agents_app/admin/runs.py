"""Runs: what happened, what was printed, and two things to do about it: stop and rerun."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from agents_app import control, dispatch
from agents_app.admin.base import Act, RecordAdmin, Verb, utc_now
from agents_app.admin.lines import RunLine
from agents_app.admin.output_pieces import output_after, whole_text
from agents_app.admin.show import badge
from agents_app.errors import Refused
from agents_app.models import Run, WorkItem

# --- verbs ----------------------------------------------------------------------------------


def _stop(run: Run, act: Act) -> str:
    if not control.stop_run(run, act.by, act.now):
        raise Refused("it is being stopped already")
    return f"{run} is being stopped"


def _rerun(run: Run, act: Act) -> str:
    item = dispatch.rerun(run, act.by, act.now)
    waits = item.state == WorkItem.State.QUEUED
    return f"{run} is run again as {item}" + (", which waits in the queue" if waits else "")


STOP = Verb("stop", "Stop", "stop", _stop, lambda run: run.slot is not None, danger=True)
RERUN = Verb("rerun", "Rerun", "replay", _rerun)


# --- pages ----------------------------------------------------------------------------------


@admin.register(Run)
class RunAdmin(RecordAdmin):
    verbs = (STOP, RERUN)
    page_template = "drover/run.html"
    list_display = ["number", "agent", "shown_state", "why", "began", "duration", "exit_code"]
    list_filter = ["state", "trigger", "agent"]
    search_fields = ["=id", "agent__name", "error", "requested_by", "=trace_id"]
    ordering = ["-id"]
    origin = ["agent", "schedule", "work_item", "parent_run", "trigger", "requested_by"]
    execution = [
        *("worker", "pid", "attempt", "rerun", "depth", "exit_code", "error", "status_text"),
        *("result_summary", "output_bytes", "output_cut_bytes", "trace_id"),
    ]
    cost = ["tokens_in", "tokens_out", "tokens_cache", "cost_usd"]
    times = ["created_at", "hinted_at", "started_at", "deadline_at", "stop_requested_at"]
    fieldsets = [
        ("Origin", {"fields": origin, "classes": ["collapse"]}),
        ("Execution", {"fields": execution, "classes": ["collapse"]}),
        ("Cost", {"fields": cost, "classes": ["collapse"]}),
        ("Times", {"fields": [*times, "finished_at"], "classes": ["collapse"]}),
    ]

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("<int:run_id>/live/", self._view(self.live), name="agents_app_run_live"),
            path("<int:run_id>/output.txt", self._view(self.text), name="agents_app_run_text"),
        ]
        return own + super().get_urls()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        runs: QuerySet[Run] = super().get_queryset(request)
        return runs.select_related("agent", "schedule", "worker")

    def _view(self, view: Any) -> Any:
        return self.admin_site.admin_view(view)

    def page(self, _request: HttpRequest, run: Run) -> dict[str, Any]:
        return self._shown(run, 0)

    def live(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """What the page of an unfinished run asks for every second: all that is new."""
        after = request.GET.get("after", "")
        seq = int(after) if after.isascii() and after.isdigit() else 0
        run = self._readable(request, run_id)
        if run.slot is None:
            # It has ended: the whole page has something new to say.
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "drover/run_live.html", self._shown(run, seq) | {"live": True})

    def text(self, request: HttpRequest, run_id: int) -> HttpResponse:
        text = whole_text(self._readable(request, run_id))
        response = HttpResponse(text, content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="run-{run_id}.txt"'
        return response

    def _readable(self, request: HttpRequest, run_id: int) -> Run:
        run = self.get_queryset(request).filter(pk=run_id).first()
        if run is None:
            raise Http404
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        return run

    def _shown(self, run: Run, seq: int) -> dict[str, Any]:
        return {
            "original": run,
            "line": RunLine(run, utc_now()),
            "output": output_after(run, seq),
            "events": run.events.order_by("id"),
        }

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
