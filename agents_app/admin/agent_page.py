"""What the page of an agent shows: how it is doing now, and what its file says."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any

from django.http import HttpRequest

from agents_app.admin.base import may_see
from agents_app.admin.lines import AgentLine, run_lines, runs_url, waiting_url
from agents_app.admin.markdown import as_html
from agents_app.admin.schedule_lines import ScheduleRow
from agents_app.admin.show import link_to, when
from agents_app.models import Agent, Schedule, WorkItem
from agents_app.triggers.preview import preview_fires

RECENT_RUNS = 10
MOST_WAITING = 5
MOST_SCHEDULES = 20
SHOWN_FIRES = 3


@dataclass(frozen=True, slots=True)
class AgentSchedule:
    """A schedule of the agent with the fires that come next."""

    line: ScheduleRow
    fires: tuple[str, ...]


def present_of(request: HttpRequest, agent: Agent, now: datetime) -> dict[str, Any]:
    """Who may see the agent may not therefore see what others asked of it or wrote to it."""
    parts = {"run": _runs, "schedule": _schedules, "workitem": _waiting, "message": _unread}
    shown: dict[str, Any] = {"original": agent, "line": AgentLine(agent, now)}
    for noun, part in parts.items():
        if may_see(request, noun):
            shown |= part(agent, now)
    return shown


def _runs(agent: Agent, now: datetime) -> dict[str, Any]:
    runs = agent.runs.select_related("agent", "schedule").order_by("-id")[:RECENT_RUNS]
    return {"runs": run_lines(runs, now), "runs_url": runs_url(agent)}


def _schedules(agent: Agent, now: datetime) -> dict[str, Any]:
    schedules = agent.schedules.exclude(state=Schedule.State.CANCELED).order_by("name")
    return {"schedules": [_schedule(each, now) for each in schedules[:MOST_SCHEDULES]]}


def _waiting(agent: Agent, now: datetime) -> dict[str, Any]:
    queued = agent.work_items.filter(state=WorkItem.State.QUEUED).order_by("id")[:MOST_WAITING]
    waiting = [(link_to(item), item, when(item.created_at, now)) for item in queued]
    return {"waiting": waiting, "waiting_url": waiting_url(agent)}


def _unread(agent: Agent, now: datetime) -> dict[str, Any]:
    unread = agent.messages.filter(read_at__isnull=True).order_by("id")[:MOST_WAITING]
    return {"unread": [(link_to(each), each, when(each.created_at, now)) for each in unread]}


def definition_of(agent: Agent) -> dict[str, Any]:
    # The instructions of the harness `shell` are a script.
    is_script = agent.harness == "shell"
    command = agent.command if isinstance(agent.command, list) else [agent.command]
    return {
        "instructions": "" if is_script else as_html(agent.instructions),
        "script": agent.instructions if is_script else "",
        "file": str(PurePath(agent.directory) / "SKILL.md") if agent.directory else "",
        "command": " ".join(str(word) for word in command),
        "isolation": agent.runtime.get("type", "process"),
    }


def _schedule(schedule: Schedule, now: datetime) -> AgentSchedule:
    line = ScheduleRow(schedule, now)
    if schedule.state != Schedule.State.ACTIVE or schedule.next_fire_at is None:
        return AgentSchedule(line, ())
    shown = preview_fires(
        *(schedule.expression, schedule.timezone, now),
        gap=schedule.gap,
        overlap_hour=schedule.overlap_hour,
        anchor=schedule.anchor,
        armed=schedule.next_fire_at,
        count=1 if schedule.one_shot else SHOWN_FIRES,
    )
    return AgentSchedule(line, tuple(fire.local for fire in shown.fires))
