"""Pages of agents; definitions are changed in the files, state is changed here."""

from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app.accounts import removal
from agents_app.admin.agent_history import history_of
from agents_app.admin.agent_page import definition_of, present_of, webhooks_of
from agents_app.admin.base import Act, Done, RecordAdmin, Verb, act_url, utc_now
from agents_app.admin.filters import ProjectFilter
from agents_app.admin.formatting import link_to
from agents_app.admin.summaries import AgentSummary, with_counts
from agents_app.errors import Refused
from agents_app.models import Agent, WorkItem
from agents_app.runs import control, why_waiting

# --- verbs ----------------------------------------------------------------------------------


def _run(agent: Agent, act: Act) -> Done:
    item = control.run_agent(agent, act.by, act.now, prompt=act.text)
    if item.state == WorkItem.State.QUEUED:
        return Done(f"{agent}: work item {item.pk} is queued: {why_waiting(item)}", item)
    run = item.runs.latest("id")
    return Done(format_html("{}: started {}", agent, link_to(run)), run)


def _pause(agent: Agent, act: Act) -> str:
    if not control.pause_agent(agent, act.by, act.now, act.note):
        raise Refused("already paused")
    return f"{agent} paused: schedules are skipped, other work is queued"


def _resume(agent: Agent, act: Act) -> str:
    if not control.resume_agent(agent, act.by, act.now):
        raise Refused("not paused")
    return f"{agent} resumed"


def _stop(agent: Agent, act: Act) -> str:
    if not (stopped := control.stop_agent(agent, act.by, act.now)):
        raise Refused("nothing was running")
    return f"{agent}: stopping {stopped} run{'' if stopped == 1 else 's'}"


def _scale(agent: Agent, act: Act) -> str:
    if not (act.text.isascii() and act.text.isdigit() and len(act.text) < 10):
        raise Refused(f"{act.text[:20]!r} is not a valid scale: enter a number from 0 to 10000")
    control.scale_agent(agent, scale := int(act.text), act.by, act.now)
    if scale == 0:
        return f"{agent} disabled: current runs finish, no new run starts"
    return f"{agent}: scale set to {scale}, until its SKILL.md changes"


def _forget(agent: Agent, act: Act) -> str:
    removal.forget_agent(agent, act.by, act.now)
    return f"{agent} forgotten, with its schedules, runs and usage"


RUN = Verb("run", "Run now", "play_arrow", _run, lambda a: a.enabled, asks="Prompt (optional)")
PAUSE = Verb("pause", "Pause", "pause", _pause, lambda a: not a.paused_at, asks="Reason (optional)")
RESUME = Verb("resume", "Resume", "resume", _resume, lambda a: a.paused_at is not None)
STOP = Verb("stop", "Stop runs", "stop", _stop, lambda a: a.running > 0, danger=True)
SCALE = Verb("scale", "Set scale", "tune", _scale, lambda a: not a.removed_at, in_list=False)
FORGET = Verb(
    *("forget", "Forget", "delete_forever", _forget, lambda a: a.removed_at is not None),
    danger=True,
    effect="Deletes the agent with its schedules, runs and usage.",
)
# Verbs with their own form on the agent page.
WITH_FORM = (RUN, SCALE)


# --- pages ----------------------------------------------------------------------------------


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "is"
    conditions = {
        "enabled": Q(scale__gt=0, removed_at__isnull=True, paused_at__isnull=True),
        "paused": Q(paused_at__isnull=False),
        "disabled": Q(scale=0) | Q(removed_at__isnull=False),
        "invalid": ~Q(definition_error=""),
        "removed": Q(removed_at__isnull=False),
    }

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in self.conditions]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        return queryset.filter(self.conditions.get(self.value() or "", Q()))


@admin.register(Agent)
class AgentAdmin(RecordAdmin):
    verbs = (RUN, PAUSE, RESUME, STOP, SCALE, FORGET)
    page_template = "drover/agent.html"
    list_display = ["agent", "state", "slots", "queue", "last_outcome", "next_fire"]
    list_filter = [StateFilter, ProjectFilter]
    search_fields = ["name", "description"]
    ordering = ["name"]
    fieldsets = [
        (
            "All settings",
            {
                "fields": [
                    *("description", "harness", "command", "directory", "runtime"),
                    *("scale", "timeout_seconds", "budget", "over_budget_until"),
                    *("work_queue_size", "max_reruns", "max_call_depth", "retries", "on_lost"),
                    *("env", "params", "hooks", "credentials", "webhooks"),
                    *("created_at", "updated_at"),
                ],
                "classes": ["collapse"],
            },
        )
    ]

    class Media:
        css = {"all": ["drover/agent.css"]}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("<int:agent_id>/now/", view(self.now), name="agents_app_agent_now"),
            path("<int:agent_id>/history/", view(self.history), name="agents_app_agent_history"),
        ]
        return own + super().get_urls()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return with_counts(super().get_queryset(request))

    def page(self, request: HttpRequest, agent: Agent) -> dict[str, Any]:
        now = utc_now()
        return {
            **self._present(request, agent),
            **definition_of(agent),
            **webhooks_of(request, agent),
            "history": history_of(agent, now),
            "own_buttons": True,
        }

    def now(self, request: HttpRequest, agent_id: int) -> HttpResponse:
        """The live part of the page, reloaded when an event of the agent arrives."""
        agent = self.readable(request, agent_id)
        return render(request, "drover/agent_now.html", self._present(request, agent))

    def history(self, request: HttpRequest, agent_id: int) -> HttpResponse:
        agent = self.readable(request, agent_id)
        context = {"original": agent, "history": history_of(agent, utc_now())}
        return render(request, "drover/agent_history.html", context)

    def _present(self, request: HttpRequest, agent: Agent) -> dict[str, Any]:
        shown = present_of(request, agent, utc_now())
        if self.has_act_permission(request):
            shown["buttons"] = [
                each for each in self.buttons(request, agent) if each[0] not in WITH_FORM
            ]
            shown["run_url"] = act_url(agent, RUN) if RUN.fits(agent) else ""
            shown["scale_url"] = act_url(agent, SCALE) if SCALE.fits(agent) else ""
        return shown

    @admin.display(ordering="name")
    def agent(self, agent: Agent) -> SafeString:
        kind = "dv-error" if agent.definition_error else "dv-below"
        below = agent.definition_error or agent.description
        return format_html('<strong>{}</strong><span class="{}">{}</span>', agent, kind, below)

    def state(self, agent: Agent) -> SafeString:
        summary = AgentSummary(agent, utc_now())
        # The error of a file is below the name.
        note = "" if agent.definition_error else summary.note
        return format_html('<div>{}<span class="dv-note">{}</span></div>', summary.badge, note)

    @admin.display(ordering="running")
    def slots(self, agent: Agent) -> SafeString:
        return AgentSummary(agent, utc_now()).slots

    @admin.display(ordering="queued")
    def queue(self, agent: Agent) -> SafeString:
        return AgentSummary(agent, utc_now()).queue

    @admin.display(ordering=F("last_finished_at").desc(nulls_last=True))
    def last_outcome(self, agent: Agent) -> SafeString:
        return AgentSummary(agent, utc_now()).outcome

    @admin.display(ordering=F("next_fire_at").asc(nulls_last=True))
    def next_fire(self, agent: Agent) -> SafeString:
        return AgentSummary(agent, utc_now()).next_fire
