"""Current state and definition of an agent, as its page shows them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from agents_app.admin.base import may_see
from agents_app.admin.formatting import link_to, webhook_url, when
from agents_app.admin.markdown import as_html
from agents_app.admin.summaries import (
    AgentSummary,
    ScheduleSummary,
    queue_url,
    run_summaries,
    runs_url,
)
from agents_app.models import Agent, Schedule, WorkItem
from agents_app.triggers.preview import preview_fires

RECENT_RUNS = 10
MOST_QUEUED = 5
MOST_SCHEDULES = 20
SHOWN_FIRES = 3


@dataclass(frozen=True, slots=True)
class AgentSchedule:
    """A schedule of the agent with its next fires."""

    summary: ScheduleSummary
    fires: tuple[str, ...]


def present_of(request: HttpRequest, agent: Agent, now: datetime) -> dict[str, Any]:
    """Runs, schedules, work items and messages only for users who may see these tables."""
    parts = {"run": _runs, "schedule": _schedules, "workitem": _queued, "message": _unread}
    shown: dict[str, Any] = {"original": agent, "summary": AgentSummary(agent, now)}
    for noun, part in parts.items():
        if may_see(request, noun):
            shown |= part(agent, now)
    return shown


def _runs(agent: Agent, now: datetime) -> dict[str, Any]:
    runs = agent.runs.select_related("agent", "schedule").order_by("-id")[:RECENT_RUNS]
    return {"runs": run_summaries(runs, now), "runs_url": runs_url(agent)}


def _schedules(agent: Agent, now: datetime) -> dict[str, Any]:
    schedules = agent.schedules.exclude(state=Schedule.State.CANCELED).order_by("name")
    return {"schedules": [_schedule(each, now) for each in schedules[:MOST_SCHEDULES]]}


def _queued(agent: Agent, now: datetime) -> dict[str, Any]:
    queued = agent.work_items.filter(state=WorkItem.State.QUEUED).order_by("id")[:MOST_QUEUED]
    items = [(link_to(item), item, when(item.created_at, now)) for item in queued]
    return {"queued": items, "queue_url": queue_url(agent)}


def _unread(agent: Agent, now: datetime) -> dict[str, Any]:
    unread = agent.messages.filter(read_at__isnull=True).order_by("id")[:MOST_QUEUED]
    return {"unread": [(link_to(each), each, when(each.created_at, now)) for each in unread]}


def webhooks_of(request: HttpRequest, agent: Agent) -> dict[str, Any]:
    """The page and the URL of each source that starts the agent, for users who may see them."""
    if not may_see(request, "webhooksource"):
        return {}
    names = {str(each.get("source", "")) for each in agent.webhooks}
    found = agent.tenant.webhook_sources.filter(name__in=names, removed_at__isnull=True)
    shown = [(link_to(source), webhook_url(request, source)) for source in found.order_by("name")]
    return {"webhook_sources": shown}


def definition_of(agent: Agent) -> dict[str, Any]:
    # The harness `shell` executes the instructions as a script.
    is_script = agent.harness == "shell"
    command = agent.command if isinstance(agent.command, list) else [agent.command]
    return {
        "instructions": "" if is_script else as_html(agent.instructions),
        "script": agent.instructions if is_script else "",
        "file": str(agent.definition_file) if agent.directory else "",
        "command": " ".join(str(word) for word in command),
        "isolation": agent.runtime.get("type", "process"),
    }


def _schedule(schedule: Schedule, now: datetime) -> AgentSchedule:
    summary = ScheduleSummary(schedule, now)
    if schedule.shown_state != Schedule.State.ACTIVE or schedule.next_fire_at is None:
        return AgentSchedule(summary, ())
    shown = preview_fires(
        *(schedule.expression, schedule.timezone, now),
        gap=schedule.gap,
        overlap_hour=schedule.overlap_hour,
        anchor=schedule.anchor,
        armed=schedule.next_fire_at,
        count=1 if schedule.one_shot else SHOWN_FIRES,
    )
    return AgentSchedule(summary, tuple(fire.local for fire in shown.fires))
