"""Adds up usage, and blocks agents and tenants that have used up a cap until its window ends.

Days and months are those of the project's time zone. The sums are rows, so every decision can be
repeated from them: after a report, by the sweep, and when a cap in a file has changed.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from django.db.models import F, Q, QuerySet, Sum

from agents_app.budgets.caps import Window, day_of, day_window, month_window, run_is_over, used_up
from agents_app.database import in_transaction
from agents_app.errors import NotFound, Refused
from agents_app.events import journal
from agents_app.harness import MOST_TOKENS, MOST_USD, Report, Spending, cost
from agents_app.models import Agent, Run, Tenant, Usage
from agents_app.runs import dispatch, lock_agents
from agents_app.text import summary

MAX_RESULT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SpentSums:
    """The usage of a run so far; `over` is the cap that was exceeded, as text, or empty."""

    totals: Spending
    over: str = ""


# --- usage reports --------------------------------------------------------------------------


def record_usage(
    run_id: int,
    tokens_in: int,
    tokens_out: int,
    tokens_cache: int,
    cost_usd: Decimal | float,
    now: datetime,
) -> SpentSums:
    """Add the usage of a run since its last report; ignored for a run that has ended."""
    more = _checked_spending(tokens_in, tokens_out, tokens_cache, cost_usd)
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound("there is no such run")
    spent = in_transaction(lambda: _add(run, more, now))
    # In a separate transaction: it must see concurrent reports of other agents' runs.
    over = reevaluate_tenant(run.tenant_id, now)
    return replace(spent, over=spent.over or over)


def record_report(run_id: int, report: Report, now: datetime) -> None:
    """Record the final report of a tool; in the transaction that ends the run."""
    run = Run.objects.get(pk=run_id)
    # The agent is locked first, as everywhere: a stop may be requested concurrently.
    lock_agents([run.agent_id])
    if report.text:
        result = summary(report.text, MAX_RESULT_BYTES)
        silent = Run.objects.filter(pk=run_id, state=Run.State.RUNNING, return_value="")
        silent.update(return_value=result, result_summary=summary(result))
    if report.spending != Spending():
        _add(run, report.spending, now, ended=True)


def _add(run: Run, more: Spending, now: datetime, *, ended: bool = False) -> SpentSums:
    lock_agents([run.agent_id])
    running = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING)
    added = running.update(
        tokens_in=F("tokens_in") + more.tokens_in,
        tokens_out=F("tokens_out") + more.tokens_out,
        tokens_cache=F("tokens_cache") + more.tokens_cache,
        cost_usd=F("cost_usd") + more.cost_usd,
    )
    run.refresh_from_db()
    totals = Spending(run.tokens_in, run.tokens_out, run.tokens_cache, cost(run.cost_usd))
    if not added:
        return SpentSums(totals)
    _add_to_day(run, more, now)
    over = _check_run(run, totals, now, ended=ended)
    exhausted = _reevaluate_agent(run.agent_id, now, ended_run=run.pk if ended else None)
    return SpentSums(totals, over or exhausted)


def _add_to_day(run: Run, more: Spending, now: datetime) -> None:
    day = day_of(now, Tenant.objects.get(pk=run.tenant_id).zone)
    # The agent is locked, so no concurrent transaction creates this row.
    row, _ = Usage.objects.get_or_create(
        agent_id=run.agent_id, day=day, defaults={"tenant_id": run.tenant_id}
    )
    Usage.objects.filter(pk=row.pk).update(
        tokens=F("tokens") + more.tokens, cost_usd=F("cost_usd") + more.cost_usd
    )


def _check_run(run: Run, totals: Spending, now: datetime, *, ended: bool) -> str:
    caps = Agent.objects.values_list("budget", flat=True).get(pk=run.agent_id)
    over = run_is_over(caps, totals.tokens, totals.cost_usd)
    if over and (ended or dispatch.request_stop([run], now, over)):
        journal.record(
            journal.JournalEntry("run.over_budget", now, run.tenant_id, run.agent_id, run.pk, over)
        )
    return over


def _checked_spending(
    tokens_in: int, tokens_out: int, tokens_cache: int, cost_usd: Any
) -> Spending:
    for name, value in (("in", tokens_in), ("out", tokens_out), ("cache", tokens_cache)):
        if not 0 <= value <= MOST_TOKENS:
            raise Refused(f"tokens_{name} must be from 0 to {MOST_TOKENS:,}, not {value:,}")
    if not 0 <= cost_usd <= MOST_USD:
        raise Refused(f"cost_usd must be from 0 to {MOST_USD:,}, not {cost_usd}")
    return Spending(tokens_in, tokens_out, tokens_cache, cost(cost_usd))


# --- blocked agents and tenants -------------------------------------------------------------


def reevaluate_all(tenant_id: int, now: datetime) -> None:
    """Evaluate the caps of all agents and of the tenant again, after caps have changed."""
    with_budget = Agent.objects.filter(tenant=tenant_id).exclude(
        budget={}, over_budget_until__isnull=True
    )
    for agent_id in with_budget.values_list("pk", flat=True):
        in_transaction(partial(_reevaluate_agent, agent_id, now))
    reevaluate_tenant(tenant_id, now)


def sweep(now: datetime) -> int:
    """Unblock agents whose window has ended, and stop runs that started after a cap was used up.

    Returns the number of changes.
    """
    turned = list(Agent.objects.filter(over_budget_until__lte=now).values_list("pk", flat=True))
    for agent_id in turned:
        in_transaction(partial(_reevaluate_agent, agent_id, now))
    capped = Tenant.objects.filter(
        Q(settings__has_key="budget") | Q(over_budget_until__isnull=False)
    )
    for tenant_id in capped.values_list("pk", flat=True):
        reevaluate_tenant(tenant_id, now)
    return len(turned) + _stop_late_starts(now)


def _reevaluate_agent(agent_id: int, now: datetime, ended_run: int | None = None) -> str:
    """Block or unblock the agent; returns the cap that is used up, as text, or empty.

    Locks the agent; in a transaction.
    """
    lock_agents([agent_id])
    agent = Agent.objects.select_related("tenant").get(pk=agent_id)
    if not agent.budget and agent.over_budget_until is None:
        return ""
    window = day_window(now, agent.tenant.zone)
    exhausted = _exhausted_cap(agent.budget, "day", Usage.objects.filter(agent=agent), window)
    was, until = agent.over_budget_until, window.ends_at if exhausted else None
    if until == was:
        return exhausted
    Agent.objects.filter(pk=agent_id).update(over_budget_until=until)
    if until is None:
        journal.record(journal.JournalEntry("agent.within_budget", now, agent.tenant_id, agent_id))
    elif was is None:
        journal.record(
            journal.JournalEntry(
                "agent.over_budget", now, agent.tenant_id, agent_id, None, exhausted
            )
        )
    if exhausted:
        others = _running().filter(agent=agent).exclude(pk=ended_run or 0)
        dispatch.request_stop(others, now, exhausted)
    return exhausted


def reevaluate_tenant(tenant_id: int, now: datetime) -> str:
    """Block or unblock the tenant by the caps of its month; returns the used up cap or empty."""
    exhausted, is_new = in_transaction(lambda: _reevaluate_tenant(tenant_id, now))
    if is_new:
        # In a separate transaction: agents are locked before tenants, never after.
        dispatch.request_stop(_running().filter(tenant=tenant_id), now, exhausted)
    return exhausted


def _reevaluate_tenant(tenant_id: int, now: datetime) -> tuple[str, bool]:
    tenant = Tenant.objects.get(pk=tenant_id)
    caps = tenant.settings.get("budget", {})
    if not caps and tenant.over_budget_until is None:
        return "", False
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    window = month_window(now, tenant.zone)
    exhausted = _exhausted_cap(caps, "month", Usage.objects.filter(tenant=tenant), window)
    was, until = tenant.over_budget_until, window.ends_at if exhausted else None
    if until == was:
        return exhausted, False
    Tenant.objects.filter(pk=tenant_id).update(over_budget_until=until)
    if until is None:
        journal.record(journal.JournalEntry("tenant.within_budget", now, tenant_id))
    elif was is None:
        journal.record(journal.JournalEntry("tenant.over_budget", now, tenant_id, detail=exhausted))
    return exhausted, bool(exhausted)


def _exhausted_cap(
    caps: dict[str, Any], name: str, usage: "QuerySet[Usage]", window: Window
) -> str:
    within = usage.filter(day__gte=window.first, day__lte=window.last)
    used = within.aggregate(tokens=Sum("tokens"), cost=Sum("cost_usd"))
    return used_up(caps, name, used["tokens"] or 0, used["cost"] or Decimal(0))


def _stop_late_starts(now: datetime) -> int:
    """Stop runs that were admitted before a cap was used up and started after it."""
    over = Q(agent__over_budget_until__isnull=False) | Q(tenant__over_budget_until__isnull=False)
    return dispatch.request_stop(_running().filter(over), now, "budget: used up")


def _running() -> "QuerySet[Run]":
    return Run.objects.filter(
        state=Run.State.RUNNING, slot__isnull=False, stop_requested_at__isnull=True
    )
