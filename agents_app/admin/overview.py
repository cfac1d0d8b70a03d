"""The first page: what runs, what waits, what failed, what comes next."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q, Sum
from django.http import HttpRequest
from django.urls import reverse

from agents_app.admin.agents import PAUSE, RESUME, RUN
from agents_app.admin.base import act_url, utc_now
from agents_app.admin.lines import AgentLine, run_lines, with_figures
from agents_app.admin.schedule_lines import schedule_lines
from agents_app.conf import CONF
from agents_app.maintenance.readiness import readiness
from agents_app.models import Agent, RuleBook, Run, Schedule, Tenant, Worker, WorkItem

LINES = 8
MOST_AGENTS = 100
FAILED = (Run.State.FAILED, Run.State.TIMED_OUT, Run.State.LOST, Run.State.DEAD)


@dataclass(frozen=True, slots=True)
class Card:
    label: str
    number: int
    detail: str
    url: str
    alarming: bool = False


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold calls this for the index; the number of queries does not grow with the fleet."""
    now = utc_now()
    context |= {"title": "Fleet", "warnings": _warnings(), "project": CONF.project}
    if _may_see(request, "run"):
        runs = Run.objects.select_related("agent", "schedule").order_by("-id")
        unfinished, ended = runs.filter(slot__isnull=False), runs.filter(slot__isnull=True)
        context["running"] = run_lines(unfinished[:LINES], now)
        context["recent"] = run_lines(ended[:LINES], now)
        context["cards"] = _cards(now)
    if _may_see(request, "schedule"):
        context["next_fires"] = schedule_lines(_next_schedules(), now)
    if _may_see(request, "agent"):
        context["agents"] = _agents(request, now)
    return context


def _may_see(request: HttpRequest, noun: str) -> bool:
    return any(request.user.has_perm(f"agents_app.{may}_{noun}") for may in ("view", "change"))


def _agents(request: HttpRequest, now: datetime) -> list[dict[str, Any]]:
    """A line each, with the buttons that fit."""
    verbs = (RUN, PAUSE, RESUME) if request.user.has_perm("agents_app.change_agent") else ()
    present = Agent.objects.filter(removed_at__isnull=True).order_by("name")
    return [
        {
            "line": AgentLine(agent, now),
            "buttons": [(verb, act_url(agent, verb)) for verb in verbs if verb.fits(agent)],
        }
        for agent in with_figures(present)[:MOST_AGENTS]
    ]


def _next_schedules() -> list[Schedule]:
    armed = Schedule.objects.filter(state=Schedule.State.ACTIVE, next_fire_at__isnull=False)
    alive = armed.filter(agent__removed_at__isnull=True, agent__paused_at__isnull=True)
    alive = alive.filter(agent__scale__gt=0, tenant__paused_at__isnull=True)
    return list(alive.select_related("agent").order_by("next_fire_at")[:LINES])


def _cards(now: datetime) -> list[Card]:
    unfinished = Run.objects.filter(slot__isnull=False).aggregate(
        running=Count("pk", filter=Q(state=Run.State.RUNNING)),
        pending=Count("pk", filter=Q(state=Run.State.PENDING)),
    )
    since = now - timedelta(hours=24)
    failed = Run.objects.filter(finished_at__gte=since, state__in=FAILED).count()
    queued = WorkItem.objects.filter(state=WorkItem.State.QUEUED).count()
    alive = Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now)
    workers = alive.aggregate(number=Count("pk"), threads=Sum("concurrency", default=0))
    failures = {"state__in": ",".join(FAILED), "finished_at__gte": since.isoformat()}
    return [
        Card(
            "Running now",
            unfinished["running"],
            f"{unfinished['pending']} about to start",
            _list("run", slot__isnull=False),
        ),
        Card("Queued", queued, "waiting for a slot", _list("workitem", state__exact="queued")),
        Card(
            "Failed in 24 h",
            failed,
            "failed, timed out or lost",
            _list("run", **failures),
            alarming=failed > 0,
        ),
        Card(
            "Workers",
            workers["number"],
            f"{workers['threads']} runs at once",
            _list("worker", state__exact="alive"),
            alarming=workers["number"] == 0,
        ),
    ]


def _list(noun: str, **filters: Any) -> str:
    return f"{reverse(f'admin:agents_app_{noun}_changelist')}?{urlencode(filters)}"


# --- warnings -------------------------------------------------------------------------------

_MISSING = {
    "worker": "Nothing can run: no worker is alive.",
    "beat": "Nothing fires by time: beat has not been seen lately.",
}


def _warnings() -> list[str]:
    start = "Start Drover with: python manage.py up"
    missing = [f"{_MISSING[part]} {start}" for part in readiness(datetime.now(UTC))]
    tenants = list(Tenant.objects.order_by("name"))
    paused = [_paused(tenant) for tenant in tenants if tenant.paused_at]
    spent = [_spent(tenant) for tenant in tenants if tenant.over_budget_until]
    return (
        missing
        + paused
        + spent
        + [error for tenant in tenants for error in tenant.definition_errors]
        + [problem for book in RuleBook.objects.all() for problem in book.problems]
    )


def _spent(tenant: Tenant) -> str:
    until = f"{tenant.over_budget_until:%Y-%m-%d %H:%M %Z}"
    return f"The budget of {tenant} is used up until {until}: schedules are skipped, work waits."


def _paused(tenant: Tenant) -> str:
    note = f" ({tenant.pause_note})" if tenant.pause_note else ""
    return f"All agents of {tenant} are paused{note}: schedules are skipped, other work waits."
