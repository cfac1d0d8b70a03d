"""One look at the fleet, by which all rules of a tick are judged.

The number of queries is the same whatever the number of agents, runs and rules, as long as they
count failures within no more than 500 different times.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Q, Sum

from agents_app.conf import CONF
from agents_app.models import Agent, Run, Tenant, Usage
from agents_app.rows import fetch, moment, on_sqlite, stamp
from agents_app.rules.needs import Needs
from agents_app.rules.rule import AgentState, Snapshot
from agents_app.spending import day_of, month_window, percent_used

_AGENTS = """
SELECT id, name, paused_at IS NOT NULL, scale > 0 FROM drover_agent
WHERE tenant_id = %s AND removed_at IS NULL ORDER BY name"""
# Indexes of a tenant's and of an agent's runs have all that ever were: a plus keeps them out of it.
_QUEUED = """
SELECT agent_id, count(*) FROM drover_work_item
WHERE state = 'queued' AND +tenant_id = %s GROUP BY agent_id"""
_FAILED = """
SELECT +agent_id, {counts} FROM drover_run
WHERE finished_at > %s AND +tenant_id = %s AND state IN ({states}) GROUP BY 1"""
_BADLY = ", ".join(f"'{state}'" for state in Run.ENDED_BADLY)
# Pieces of output are in an index by their order, so the last one of a run is one step away.
_PIECE = "SELECT o.at FROM drover_run_output o WHERE o.run_id = r.id ORDER BY o.seq DESC LIMIT 1"
_SIGNS = ("r.started_at", "r.signaled_at", "r.printed_at")
_LAST_SIGNS = """
SELECT r.agent_id, max({latest}(r.created_at, {signs}))
FROM drover_run r WHERE r.slot IS NOT NULL AND +r.tenant_id = %s GROUP BY r.agent_id"""
# A query has no more than 1,600 columns in PostgreSQL and 2,000 in SQLite.
WINDOWS_IN_ONE_QUERY = 500


class Fate(NamedTuple):
    """What may change about an agent so that a rule that failed deserves another chance."""

    alive: bool
    paused: bool
    enabled: bool


@dataclass(frozen=True, slots=True)
class Fleet:
    """What rules are judged by, and how it is with each agent apart from that."""

    snapshot: Snapshot
    fates: Mapping[str, Fate]


def look_at_fleet(tenant: Tenant, needs: Needs, now: datetime) -> Fleet:
    agents = fetch(_AGENTS, [tenant.pk])
    active = _last_active(tenant, needs)
    queued = _queued(tenant) if needs.queued else {}
    failed = _failed(tenant, needs.failed_within, now) if needs.failed_within else {}
    spent = _spent(tenant, needs.spent, now) if needs.spent else {}
    states = {
        name: AgentState(
            idle_seconds=_seconds_since(active.get(pk), now),
            queued=queued.get(pk, 0),
            failed=failed.get(pk, {}),
            spent_percent=spent.get(pk),
        )
        for pk, name, _, _ in agents
    }
    fates = {
        name: Fate(pk in active, bool(paused), bool(enabled))
        for pk, name, paused, enabled in agents
    }
    return Fleet(Snapshot(now, CONF.project.name, states), fates)


def _seconds_since(last: datetime | None, now: datetime) -> float | None:
    return None if last is None else max(0.0, (now - last).total_seconds())


def _last_active(tenant: Tenant, needs: Needs) -> dict[int, datetime]:
    """Of each agent that has unfinished runs: when the last of them did anything."""
    signs = (*_SIGNS, f"({_PIECE})") if needs.idle else _SIGNS
    sql = _LAST_SIGNS.format(
        latest="max" if on_sqlite() else "greatest",
        signs=", ".join(f"coalesce({sign}, r.created_at)" for sign in signs),
    )
    return {agent_id: moment(at) for agent_id, at in fetch(sql, [tenant.pk])}


def _queued(tenant: Tenant) -> dict[int, int]:
    return dict(fetch(_QUEUED, [tenant.pk]))


def _failed(
    tenant: Tenant, windows: tuple[int, ...], now: datetime
) -> Mapping[int, Mapping[int, int]]:
    """Of each agent with failures; a window that is not there has none."""
    failed: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for start in range(0, len(windows), WINDOWS_IN_ONE_QUERY):
        some = windows[start : start + WINDOWS_IN_ONE_QUERY]
        for agent_id, numbers in _failed_within(tenant, some, now).items():
            failed[agent_id].update(numbers)
    return failed


def _failed_within(
    tenant: Tenant, windows: tuple[int, ...], now: datetime
) -> dict[int, dict[int, int]]:
    since = [stamp(now - timedelta(seconds=seconds)) for seconds in windows]
    counts = ", ".join(["count(*) FILTER (WHERE finished_at > %s)"] * len(since))
    found = fetch(_FAILED.format(counts=counts, states=_BADLY), [*since, min(since), tenant.pk])
    return {agent_id: dict(zip(windows, numbers, strict=True)) for agent_id, *numbers in found}


def _spent(tenant: Tenant, names: frozenset[str], now: datetime) -> dict[int, float | None]:
    """Of the tightest cap that counts: the agent's own of the day, the project's of the month."""
    caps = dict(Agent.objects.filter(tenant=tenant, name__in=names).values_list("pk", "budget"))
    month, today = month_window(now, tenant.zone), Q(day=day_of(now, tenant.zone))
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
