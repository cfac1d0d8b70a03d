"""The numbers and warnings at the top of the overview."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q, Sum
from django.urls import reverse

from agents_app.budgets import month_window
from agents_app.conf import TYPED_PROGRAM
from agents_app.models import (
    DEFAULT_TENANT,
    RuleBook,
    Run,
    Schedule,
    Scheduler,
    Tenant,
    Usage,
    Worker,
    WorkItem,
)
from agents_app.runs import missing_processes, read_scheduler
from agents_app.text import rough


@dataclass(frozen=True, slots=True)
class Card:
    label: str
    number: int | str
    detail: str
    url: str
    alarming: bool = False


def run_cards(now: datetime) -> list[Card]:
    unfinished = Run.objects.filter(slot__isnull=False).aggregate(
        running=Count("pk", filter=Q(state=Run.State.RUNNING)),
        pending=Count("pk", filter=Q(state=Run.State.PENDING)),
    )
    since = now - timedelta(hours=24)
    failed = Run.objects.filter(finished_at__gte=since, state__in=Run.ENDED_BADLY).count()
    queued = WorkItem.objects.filter(state=WorkItem.State.QUEUED).count()
    failures = {"state__in": ",".join(Run.ENDED_BADLY), "finished_at__gte": since.isoformat()}
    return [
        Card(
            "Running",
            unfinished["running"],
            f"{unfinished['pending']} starting",
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
    ]


def next_fire_card(schedules: Sequence[Schedule], now: datetime) -> Card:
    """Requires active schedules, soonest first."""
    if not schedules or schedules[0].next_fire_at is None:
        return Card("Next fire", "-", "no active schedule", _list("schedule"))
    wait = (schedules[0].next_fire_at - now).total_seconds()
    number = f"in {rough(wait)}" if wait >= 1 else "now"
    return Card("Next fire", number, schedules[0].agent.name, _list("schedule"))


def worker_card(now: datetime) -> Card:
    alive = Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now)
    workers = alive.aggregate(number=Count("pk"), threads=Sum("concurrency", default=0))
    return Card(
        "Workers",
        workers["number"],
        f"{workers['threads']} threads",
        _list("worker", state__exact="alive"),
        alarming=workers["number"] == 0,
    )


def spending_card(tenants: Sequence[Tenant], now: datetime) -> Card:
    """The cost of all tenants; day and month in the time zone of the default tenant."""
    own = next((tenant for tenant in tenants if tenant.name == DEFAULT_TENANT), None)
    place = (own or Tenant()).zone
    month, today = month_window(now, place), now.astimezone(place).date()
    used = Usage.objects.filter(tenant__in=tenants, day__gte=month.first)
    spent = used.aggregate(
        month=Sum("cost_usd", default=0), today=Sum("cost_usd", filter=Q(day=today), default=0)
    )
    return Card(
        "Spent today",
        f"${spent['today']:,.2f}",
        f"${spent['month']:,.2f} this month",
        _list("usage", day__gte=month.first.isoformat()),
        alarming=any(tenant.over_budget_until for tenant in tenants),
    )


def _list(noun: str, **filters: Any) -> str:
    return f"{reverse(f'admin:agents_app_{noun}_changelist')}?{urlencode(filters)}"


# --- warnings -------------------------------------------------------------------------------

_MISSING = {
    "worker": "No worker is running, so no run can start.",
    "beat": "Beat is not running, so no schedule fires.",
}
_DRAINING = "Drover is draining: no new run starts, and it exits when the last run has ended."
MOST_OF_A_KIND = 5


def warnings(tenants: Sequence[Tenant], now: datetime, sees: Callable[[str], bool]) -> list[str]:
    """Missing processes are shown to every user, quoted rows to users who may see them."""
    start = f"Start Drover with: {TYPED_PROGRAM} up"
    scheduler = read_scheduler(now)
    if scheduler.state == Scheduler.State.DRAINING:
        texts = [_DRAINING]  # a drain stops beat first
    else:
        texts = [f"{_MISSING[part]} {start}" for part in missing_processes(scheduler, now)]
    if sees("tenant"):
        texts += _first([_paused(tenant) for tenant in tenants if tenant.paused_at])
        texts += _first([_spent(tenant) for tenant in tenants if tenant.over_budget_until])
    if sees("agent"):
        texts += _first([text for tenant in tenants for text in _project_errors(tenant)])
    if sees("rulestate"):
        texts += _first([each for book in RuleBook.objects.all() for each in book.problems])
    return texts


def _first(problems: list[str]) -> list[str]:
    """Limits the list: a file with errors in every line must not fill the page."""
    more = len(problems) - MOST_OF_A_KIND
    return problems[:MOST_OF_A_KIND] + ([f"{more} more errors of this kind."] if more > 0 else [])


def _project_errors(tenant: Tenant) -> list[str]:
    """Errors in the project of another tenant than the default one begin with its name."""
    whose = "" if tenant.name == DEFAULT_TENANT else f"{tenant}: "
    return [f"{whose}{error}" for error in tenant.definition_errors]


def _spent(tenant: Tenant) -> str:
    until = f"{tenant.over_budget_until:%Y-%m-%d %H:%M %Z}"
    effect = "schedules are skipped, other work is queued"
    return f"The budget of {tenant} is used up until {until}: {effect}."


def _paused(tenant: Tenant) -> str:
    note = f" ({tenant.pause_note})" if tenant.pause_note else ""
    return f"All agents of {tenant} are paused{note}: schedules are skipped, other work is queued."
