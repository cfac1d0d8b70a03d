"""One look at the fleet, by which all rules of a tick are judged.

The number of queries is the same whatever the number of agents, runs and rules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, DateTimeField, OuterRef, Q, Subquery, Sum, Value

from agents_app.conf import CONF, HOST_ZONE
from agents_app.models import Agent, Run, RunOutput, Tenant, Usage, WorkItem
from agents_app.rules.needs import Needs
from agents_app.rules.rule import AgentState, Snapshot
from agents_app.spending import day_of, month_window, percent_used
from agents_app.triggers import zone

SIGNS_OF_LIFE = ("started_at", "signaled_at", "printed_at")
BADLY = (Run.State.FAILED, Run.State.TIMED_OUT, Run.State.LOST, Run.State.DEAD)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What rules are judged by; `fates` says of each agent what else may change about it."""

    snapshot: Snapshot
    fates: Mapping[str, str]


def look_at_fleet(tenant: Tenant, needs: Needs, now: datetime) -> Fleet:
    agents = list(
        Agent.objects.filter(tenant=tenant, removed_at__isnull=True)
        .order_by("name")
        .values_list("pk", "name", "scale", "paused_at", "budget")
    )
    active = _last_active(tenant, needs)
    queued = _queued(tenant) if needs.queued else {}
    failed = _failed(tenant, needs.failed_within, now) if needs.failed_within else {}
    spent = _spent(tenant, {pk: caps for pk, *_, caps in agents}, now) if needs.spent else {}
    states = {
        name: AgentState(
            idle_seconds=_seconds_since(active.get(pk), now),
            queued=queued.get(pk, 0),
            failed=failed.get(pk, {}),
            spent_percent=spent.get(pk),
        )
        for pk, name, *_ in agents
    }
    fates = {
        name: _fate(pk in active, scale, paused_at is not None)
        for pk, name, scale, paused_at, _ in agents
    }
    return Fleet(Snapshot(now, CONF.project.name, states), fates)


def _fate(alive: bool, scale: int, paused: bool) -> str:
    return f"{'alive' if alive else 'not alive'} {'paused ' if paused else ''}{scale > 0}"


def _seconds_since(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max(0.0, (now - moment).total_seconds())


def _last_active(tenant: Tenant, needs: Needs) -> dict[int, datetime]:
    """Of each agent that has unfinished runs: when the last of them did anything.

    A run's pieces of output are in an index by their order, so the last one is one step away.
    """
    pieces = RunOutput.objects.filter(run=OuterRef("pk")).order_by("-seq").values("at")[:1]
    nothing = Value(None, output_field=DateTimeField())
    runs = (
        Run.objects.filter(tenant=tenant, slot__isnull=False)
        .annotate(piece_at=Subquery(pieces) if needs.idle else nothing)
        .values_list("agent_id", "created_at", *SIGNS_OF_LIFE, "piece_at")
    )
    active: dict[int, datetime] = {}
    for agent_id, *moments in runs:
        latest = max(moment for moment in moments if moment is not None)
        active[agent_id] = max(active.get(agent_id, latest), latest)
    return active


def _queued(tenant: Tenant) -> dict[int, int]:
    waiting = WorkItem.objects.filter(tenant=tenant, state=WorkItem.State.QUEUED)
    return dict(waiting.order_by().values_list("agent_id").annotate(Count("pk")))


def _failed(
    tenant: Tenant, windows: tuple[int, ...], now: datetime
) -> dict[int, Mapping[int, int]]:
    since = {seconds: now - timedelta(seconds=seconds) for seconds in windows}
    counts = {
        f"within_{seconds}": Count("pk", filter=Q(finished_at__gt=moment))
        for seconds, moment in since.items()
    }
    lately = Run.objects.filter(finished_at__gt=min(since.values()), state__in=BADLY)
    found = lately.filter(tenant=tenant).order_by().values_list("agent_id").annotate(**counts)
    return {agent_id: dict(zip(windows, numbers, strict=True)) for agent_id, *numbers in found}


def _spent(
    tenant: Tenant, caps: Mapping[int, Mapping[str, Any]], now: datetime
) -> dict[int, float | None]:
    """Of the tightest cap that counts: the agent's own of the day, the project's of the month."""
    place = zone(tenant.settings.get("timezone") or HOST_ZONE)
    month, today = month_window(now, place), Q(day=day_of(now, place))
    usage = Usage.objects.filter(tenant=tenant, day__gte=month.first, day__lte=month.last)
    found = (
        usage.order_by()
        .values("agent_id")
        .annotate(
            tokens_today=Sum("tokens", filter=today),
            cost_today=Sum("cost_usd", filter=today),
            tokens_month=Sum("tokens"),
            cost_month=Sum("cost_usd"),
        )
    )
    rows = {row["agent_id"]: row for row in found}
    total_tokens = sum(row["tokens_month"] or 0 for row in rows.values())
    total_cost = sum((row["cost_month"] or Decimal(0) for row in rows.values()), Decimal(0))
    project = percent_used(tenant.settings.get("budget", {}), "month", total_tokens, total_cost)

    def tightest(agent_id: int) -> float | None:
        row: Mapping[str, Any] = rows.get(agent_id, {})
        used = (row.get("tokens_today") or 0, row.get("cost_today") or Decimal(0))
        own = percent_used(caps[agent_id], "day", *used)
        return max((one for one in (own, project) if one is not None), default=None)

    return {agent_id: tightest(agent_id) for agent_id in caps}
