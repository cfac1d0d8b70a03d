"""The overview: numbers, warnings, activity, agents, runs and next fires of the whole fleet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from django.http import HttpRequest

from agents_app.admin.base import may_see, utc_now
from agents_app.admin.doctor import may_see_findings
from agents_app.admin.overview_activity import activity, live_runs
from agents_app.admin.overview_agents import agent_entries
from agents_app.admin.overview_cards import (
    next_fire_card,
    run_cards,
    spending_card,
    warnings,
    worker_card,
)
from agents_app.admin.summaries import run_summaries, schedule_summaries
from agents_app.conf import CONF, TYPED_PROGRAM
from agents_app.models import Run, Schedule, Tenant

LISTED_ROWS = 8
_SKILL = """---
description: Says hello every five minutes
schedule: every 5 minutes
command: [echo, hello]
---
Say hello."""


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The context of the index page; called by Unfold. The number of queries is constant."""
    now = utc_now()
    tenants = list(Tenant.objects.order_by("name"))
    context |= {"title": "Overview", "here": request.get_full_path()}
    context["warnings"] = warnings(tenants, now, partial(may_see, request))
    context["cards"] = []
    if may_see(request, "run"):
        context |= _runs(request, tenants, now)
    if may_see(request, "schedule"):
        schedules = _next_schedules()
        context["next_fires"] = schedule_summaries(schedules, now)
        context["cards"].append(next_fire_card(schedules, now))
    if may_see(request, "worker"):
        context["cards"].append(worker_card(now))
    if may_see(request, "usage"):
        context["cards"].append(spending_card(tenants, now))
    if may_see(request, "agent"):
        context["agents"], context["agents_total"] = agent_entries(request, now)
        context["first_run"] = None if context["agents"] else first_run(CONF.project)
        context["may_see_doctor"] = may_see_findings(request)
    return context


def _runs(request: HttpRequest, tenants: Sequence[Tenant], now: datetime) -> dict[str, Any]:
    runs = Run.objects.select_related("agent", "schedule").order_by("-id")
    cards, live = run_cards(now), live_runs()
    latest = [run.run_id for run in live[:LISTED_ROWS]]
    return {
        "cards": cards,
        "running": run_summaries(runs.filter(pk__in=latest), now),
        "recent": run_summaries(runs.filter(slot__isnull=True)[:LISTED_ROWS], now),
        "activity": activity(request, tenants, live, int(cards[1].number), now),
    }


def _next_schedules() -> list[Schedule]:
    armed = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=False)
    enabled = armed.filter(agent__removed_at__isnull=True, agent__paused_at__isnull=True)
    enabled = enabled.filter(agent__scale__gt=0, tenant__paused_at__isnull=True)
    return list(enabled.select_related("agent").order_by("next_fire_at")[:LISTED_ROWS])


# --- a project without agents ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Shell commands that create, run and inspect a first agent."""

    create: str
    run: str = f"{TYPED_PROGRAM} run hello --wait"
    logs: str = f"{TYPED_PROGRAM} logs hello"
    doctor: str = f"{TYPED_PROGRAM} doctor"


def first_run(project: Path) -> FirstRun:
    directory = quote(str(project / "agents" / "hello"))
    return FirstRun(f"mkdir -p {directory}\ncat > {directory}/SKILL.md <<'END'\n{_SKILL}\nEND")
