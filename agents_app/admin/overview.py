"""The first page: what runs, what waits, what failed, what comes next, and what it was like."""

from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpRequest

from agents_app.admin.base import may_see, utc_now
from agents_app.admin.doctor import may_ask
from agents_app.admin.first_run import first_run
from agents_app.admin.lines import run_lines
from agents_app.admin.overview_activity import activity, live_runs
from agents_app.admin.overview_agents import agent_entries
from agents_app.admin.overview_cards import (
    next_fire_card,
    run_cards,
    spending_card,
    warnings,
    worker_card,
)
from agents_app.admin.schedule_lines import schedule_lines
from agents_app.conf import CONF
from agents_app.models import Run, Schedule, Tenant

LINES = 8


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold calls this for the index; the number of queries does not grow with the fleet."""
    now = utc_now()
    tenants = list(Tenant.objects.order_by("name"))
    context |= {"title": "Fleet", "here": request.get_full_path()}
    context["warnings"] = warnings(tenants, now, partial(may_see, request))
    context["cards"] = []
    if may_see(request, "run"):
        context |= _runs(request, now)
    if may_see(request, "schedule"):
        schedules = _next_schedules()
        context["next_fires"] = schedule_lines(schedules, now)
        context["cards"].append(next_fire_card(schedules, now))
    if may_see(request, "worker"):
        context["cards"].append(worker_card(now))
    if may_see(request, "usage"):
        context["cards"].append(spending_card(tenants, now))
    if may_see(request, "agent"):
        context["agents"], context["agents_total"] = agent_entries(request, now)
        context["first_run"] = None if context["agents"] else first_run(CONF.project)
        context["may_ask_doctor"] = may_ask(request)
    return context


def _runs(request: HttpRequest, now: datetime) -> dict[str, Any]:
    runs = Run.objects.select_related("agent", "schedule").order_by("-id")
    cards, live = run_cards(now), live_runs()
    latest = [run.run_id for run in live[:LINES]]
    return {
        "cards": cards,
        "running": run_lines(runs.filter(pk__in=latest), now),
        "recent": run_lines(runs.filter(slot__isnull=True)[:LINES], now),
        "activity": activity(request.GET.get("hours"), live, int(cards[1].number), now),
    }


def _next_schedules() -> list[Schedule]:
    armed = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=False)
    alive = armed.filter(agent__removed_at__isnull=True, agent__paused_at__isnull=True)
    alive = alive.filter(agent__scale__gt=0, tenant__paused_at__isnull=True)
    return list(alive.select_related("agent").order_by("next_fire_at")[:LINES])
