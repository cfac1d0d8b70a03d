"""Agents: what is on disk and what it is doing; only `scale` is changed here, not the files."""

from typing import Any

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents_app import control
from agents_app.admin.base import Act, DroverAdmin, Verb, utc_now
from agents_app.admin.lines import AgentLine, run_lines, runs_url, with_figures
from agents_app.admin.schedule_lines import schedule_lines
from agents_app.errors import Refused
from agents_app.models import Agent, Schedule, WorkItem

RECENT_RUNS = 10
# What control.scale_agent refuses too; said here so that the field can say it.
MOST_SLOTS = 10_000
SCALE_HELP = (
    "How many runs at once; 0 disables the agent. Holds until the agent's file changes. "
    "A lower scale lets what runs finish."
)


# --- verbs ----------------------------------------------------------------------------------


def _run(agent: Agent, act: Act) -> str:
    item = control.run_agent(agent, act.by, act.now, prompt=act.text)
    if item.state == WorkItem.State.QUEUED:
        return f"{agent}: queued, it starts as soon as the agent may run"
    return f"{agent}: a run was started"


def _pause(agent: Agent, act: Act) -> str:
    if not control.pause_agent(agent, act.by, act.now, act.note):
        raise Refused("it is paused already")
    return f"{agent} is paused: its schedules are skipped, everything else waits in its queue"


def _resume(agent: Agent, act: Act) -> str:
    if not control.resume_agent(agent, act.by, act.now):
        raise Refused("it is not paused")
    return f"{agent} goes on"


def _stop(agent: Agent, act: Act) -> str:
    if not (stopped := control.stop_agent(agent, act.by, act.now)):
        raise Refused("it has no run that could be stopped")
    return f"{agent}: {stopped} {'run is' if stopped == 1 else 'runs are'} being stopped"


RUN = Verb("run", "Run now", "play_arrow", _run, lambda a: a.enabled, asks="Prompt (optional)")
PAUSE = Verb("pause", "Pause", "pause", _pause, lambda a: not a.paused_at, asks="Why (optional)")
RESUME = Verb("resume", "Resume", "resume", _resume, lambda a: a.paused_at is not None)
STOP = Verb("stop", "Stop runs", "stop", _stop, lambda a: a.running > 0, danger=True)


# --- pages ----------------------------------------------------------------------------------


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "is"
    conditions = {
        "enabled": Q(scale__gt=0, removed_at__isnull=True, paused_at__isnull=True),
        "paused": Q(paused_at__isnull=False),
        "disabled": Q(scale=0) | Q(removed_at__isnull=False),
        "invalid": ~Q(definition_error=""),
    }

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in self.conditions]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        condition = self.conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


@admin.register(Agent)
class AgentAdmin(DroverAdmin):
    verbs = (RUN, PAUSE, RESUME, STOP)
    page_template = "drover/agent.html"
    list_display = ["agent", "state", "slots", "queue", "last_outcome", "next_fire"]
    list_filter = [StateFilter, "tenant"]
    search_fields = ["name", "description"]
    ordering = ["name"]
    definition = ["description", "harness", "command", "directory", "runtime", "timeout_seconds"]
    limits = [
        "budget",
        "over_budget_until",
        "work_queue_size",
        "max_reruns",
        "max_call_depth",
        "retries",
        "on_lost",
    ]
    inputs = ["env", "params", "hooks", "credentials", "webhooks", "created_at", "updated_at"]
    readonly_fields = [*definition, *limits, *inputs]
    fieldsets = [
        ("Slots", {"fields": ["scale"]}),
        ("Definition", {"fields": definition}),
        ("Limits", {"fields": limits, "classes": ["collapse"]}),
        ("Inputs", {"fields": inputs, "classes": ["collapse"]}),
    ]

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """An agent is made by making its directory."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        return with_figures(super().get_queryset(request))

    def formfield_for_dbfield(self, column: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if column.name == "scale":
            kwargs |= {"max_value": MOST_SLOTS, "help_text": SCALE_HELP}
        return super().formfield_for_dbfield(column, request, **kwargs)

    def save_model(self, request: HttpRequest, agent: Agent, form: Any, _change: bool) -> None:
        if "scale" in form.changed_data:
            control.scale_agent(agent, agent.scale, request.user.get_username(), utc_now())

    def page(self, _request: HttpRequest, agent: Agent) -> dict[str, Any]:
        now = utc_now()
        schedules = agent.schedules.exclude(state=Schedule.State.CANCELED).order_by("name")
        runs = agent.runs.select_related("agent", "schedule").order_by("-id")[:RECENT_RUNS]
        return {
            "line": AgentLine(agent, now),
            "runs": run_lines(runs, now),
            "runs_url": runs_url(agent),
            "schedules": schedule_lines(schedules, now),
        }

    @admin.display(ordering="name")
    def agent(self, agent: Agent) -> SafeString:
        kind = "dv-error" if agent.definition_error else "dv-below"
        below = agent.definition_error or agent.description
        return format_html('<strong>{}</strong><span class="{}">{}</span>', agent, kind, below)

    def state(self, agent: Agent) -> SafeString:
        return AgentLine(agent, utc_now()).badge

    @admin.display(ordering="running")
    def slots(self, agent: Agent) -> SafeString:
        return AgentLine(agent, utc_now()).slots

    @admin.display(ordering="queued")
    def queue(self, agent: Agent) -> SafeString:
        return AgentLine(agent, utc_now()).queue

    @admin.display(ordering=F("last_finished_at").desc(nulls_last=True))
    def last_outcome(self, agent: Agent) -> SafeString:
        return AgentLine(agent, utc_now()).outcome

    @admin.display(ordering=F("next_fire_at").asc(nulls_last=True))
    def next_fire(self, agent: Agent) -> SafeString:
        return AgentLine(agent, utc_now()).next_fire
