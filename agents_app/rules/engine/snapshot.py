"""Reads the snapshot of the fleet against which all rules of a tick are evaluated.

The number of queries does not depend on the number of agents, runs and rules, as long as rules
have no more than 500 different windows for failures.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from agents_app.budgets import day_of, month_window, percent_used
from agents_app.database import ENGINE, fetch_each, from_database_time, to_database_time
from agents_app.models import Run, Tenant, Trigger
from agents_app.rules.language import AgentState, RequiredData, Snapshot

Rows = Sequence[tuple[Any, ...]]
Query = tuple[str, list[Any]]
# In the place of a query whose data no rule needs.
_NOTHING: Query = ("SELECT 0, 0 WHERE 1 = 0", [])
_AGENTS = """
SELECT id, name, paused_at IS NOT NULL, scale > 0, {budget} FROM drover_agent
WHERE tenant_id = %s AND removed_at IS NULL ORDER BY name"""
# The unary plus keeps the planner from the indexes by tenant and agent, which contain all runs.
_QUEUED = """
SELECT agent_id, count(*) FROM drover_work_item
WHERE state = 'queued' AND +tenant_id = %s GROUP BY agent_id"""
_FAILED = """
SELECT +agent_id, {counts} FROM drover_run
WHERE finished_at > %s AND +tenant_id = %s AND state IN ({states}) GROUP BY 1"""
_FAILED_STATES = ", ".join(f"'{state}'" for state in Run.ENDED_BADLY)
_USED = """
SELECT agent_id, coalesce(sum(tokens) FILTER (WHERE day = %s), 0),
  coalesce(sum(cost_usd) FILTER (WHERE day = %s), 0), sum(tokens), sum(cost_usd)
FROM drover_usage WHERE day BETWEEN %s AND %s AND tenant_id = %s GROUP BY agent_id"""
# Pieces of output are indexed by run and order, so the last one of a run is one index lookup.
_PIECE = "SELECT o.at FROM drover_run_output o WHERE o.run_id = r.id ORDER BY o.seq DESC LIMIT 1"
_ACTIVITY_COLUMNS = ("r.started_at", "r.signaled_at", "r.printed_at")
# Runs of these triggers may be the effect of rules.
_BY_RULES = ", ".join(f"'{trigger}'" for trigger in (Trigger.RULE, Trigger.MESSAGE))
_LAST_ACTIVITY = """
SELECT r.agent_id, max({latest}), max(CASE WHEN r.trigger IN ({by_rules}) THEN 0 ELSE 1 END)
FROM drover_run r WHERE r.slot IS NOT NULL AND +r.tenant_id = %s GROUP BY r.agent_id"""
_NONE: Mapping[int, int] = MappingProxyType({})
# A query has no more than 1,600 columns in PostgreSQL and 2,000 in SQLite.
MAX_WINDOWS_PER_QUERY = 500


class AgentAvailability(NamedTuple):
    """The state of an agent whose change ends the backoff of rules that name it."""

    alive: bool
    paused: bool
    enabled: bool


@dataclass(frozen=True)
class FleetView:
    """The snapshot, and the rows of the agents."""

    snapshot: Snapshot
    agents: Rows
    # Ids of agents with an unfinished run that neither a rule nor a message started.
    started_otherwise: frozenset[int] = frozenset()

    @cached_property
    def availability(self) -> Mapping[str, AgentAvailability]:
        """Computed on demand: only rules that failed need it."""
        alive = self.snapshot.idle
        return {
            name: AgentAvailability(name in alive, bool(paused), bool(enabled))
            for _, name, paused, enabled, _ in self.agents
        }

    @cached_property
    def alive_otherwise(self) -> frozenset[str]:
        """The names of the agents whose runs are not only the effect of rules; on demand, too."""
        return frozenset(name for pk, name, *_ in self.agents if pk in self.started_otherwise)


def read_fleet(tenant: Tenant, needs: RequiredData, now: datetime) -> FleetView:
    """Read the data that the rules need, and no more."""
    windows = [
        needs.failed_within[start : start + MAX_WINDOWS_PER_QUERY]
        for start in range(0, len(needs.failed_within), MAX_WINDOWS_PER_QUERY)
    ]
    queries = [*_queries(tenant, needs, now), *(_failed_runs(tenant, w, now) for w in windows)]
    agents, active, waiting, used, *ended = fetch_each(queries)
    idle = {pk: max(0.0, (now - from_database_time(at)).total_seconds()) for pk, at, _ in active}
    started_otherwise = frozenset(pk for pk, _, otherwise in active if otherwise)
    queued: dict[int, int] = dict(waiting)
    failed = _failures(windows, ended)
    caps = {pk: json.loads(caps) for pk, name, _, _, caps in agents if name in needs.spent}
    spent = _spent(tenant, caps, used)
    states = {
        name: AgentState(idle.get(pk), queued.get(pk, 0), failed.get(pk, _NONE), spent.get(pk))
        for pk, name, *_ in agents
    }
    return FleetView(Snapshot(now, _project_name(tenant), states), agents, started_otherwise)


def _project_name(tenant: Tenant) -> str:
    """The name of the directory; a tenant without a project has its own name."""
    directory = tenant.project_directory
    return directory.name if directory else tenant.name


# --- queries --------------------------------------------------------------------------------


def _queries(tenant: Tenant, needs: RequiredData, now: datetime) -> Iterator[Query]:
    yield _AGENTS.format(budget="CAST(budget AS text)" if needs.spent else "''"), [tenant.pk]
    yield _last_activity(needs), [tenant.pk]
    yield (_QUEUED, [tenant.pk]) if needs.queued else _NOTHING
    yield (_USED, [*_days(tenant, now), tenant.pk]) if needs.spent else _NOTHING


def _last_activity(needs: RequiredData) -> str:
    """The time of the last activity of each agent with unfinished runs."""
    columns = (*_ACTIVITY_COLUMNS, f"({_PIECE})") if needs.idle else _ACTIVITY_COLUMNS
    times = (f"coalesce({column}, r.created_at)" for column in columns)
    latest = ENGINE.greatest("r.created_at", *times)
    return _LAST_ACTIVITY.format(latest=latest, by_rules=_BY_RULES)


def _days(tenant: Tenant, now: datetime) -> list[str]:
    month, today = month_window(now, tenant.zone), day_of(now, tenant.zone)
    return [str(day) for day in (today, today, month.first, month.last)]


def _failed_runs(tenant: Tenant, windows: tuple[int, ...], now: datetime) -> Query:
    since = [to_database_time(now - timedelta(seconds=seconds)) for seconds in windows]
    counts = ", ".join(["count(*) FILTER (WHERE finished_at > %s)"] * len(since))
    sql = _FAILED.format(counts=counts, states=_FAILED_STATES)
    return sql, [*since, min(since), tenant.pk]


# --- results --------------------------------------------------------------------------------


def _failures(
    windows: Sequence[tuple[int, ...]], ended: Sequence[Rows]
) -> Mapping[int, Mapping[int, int]]:
    """Failures by agent and window; agents and windows without failures are left out."""
    failed: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for some, found in zip(windows, ended, strict=True):
        for agent_id, *numbers in found:
            failed[agent_id].update(zip(some, numbers, strict=True))
    return failed


def _spent(
    tenant: Tenant, caps: Mapping[int, Mapping[str, Any]], found: Rows
) -> dict[int, float | None]:
    """Percent used of the tightest cap: the agent's of the day or the project's of the month."""
    used = {agent_id: sums for agent_id, *sums in found}
    tokens, cost = (sum(sums[at] for sums in used.values()) for at in (2, 3))
    project = percent_used(tenant.settings.get("budget", {}), "month", tokens, cost)

    def tightest(agent_id: int) -> float | None:
        tokens, cost, *_ = used.get(agent_id, (0, 0))
        own = percent_used(caps[agent_id], "day", tokens, cost)
        return max((one for one in (own, project) if one is not None), default=None)

    return {agent_id: tightest(agent_id) for agent_id in caps}
