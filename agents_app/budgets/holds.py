"""What runs used is added up; who has used up a cap starts nothing until its window turns.

A day and a month are those of the project's zone. The sums are rows, so every decision can be made
again from them at any time: after a report, by the sweep, and when a cap in a file has changed.
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

MOST_RESULT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SpentSums:
    """All that the run has used so far; `over` names the cap that was passed, if one was."""

    totals: Spending
    over: str = ""


# --- what runs report -----------------------------------------------------------------------


def note_usage(
    run_id: int,
    tokens_in: int,
    tokens_out: int,
    tokens_cache: int,
    cost_usd: Decimal | float,
    now: datetime,
) -> SpentSums:
    """A run says what it has used since it last said so. One that has ended adds nothing."""
    more = _checked(tokens_in, tokens_out, tokens_cache, cost_usd)
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound("there is no such run")
    spent = in_transaction(lambda: _add(run, more, now))
    # In a transaction of its own: it must see what runs of other agents reported meanwhile.
    over = settle_tenant(run.tenant_id, now)
    return replace(spent, over=spent.over or over)


def book(run_id: int, report: Report, now: datetime) -> None:
    """What a tool said of its run at its end; in the transaction that ends the run."""
    run = Run.objects.get(pk=run_id)
    # First, as everywhere: somebody may ask the run to stop at this moment.
    lock_agents([run.agent_id])
    if report.text:
        result = summary(report.text, MOST_RESULT_BYTES)
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
    passed = _settle_agent(run.agent_id, now, ended_run=run.pk if ended else None)
    return SpentSums(totals, over or passed)


def _add_to_day(run: Run, more: Spending, now: datetime) -> None:
    day = day_of(now, Tenant.objects.get(pk=run.tenant_id).zone)
    # The agent is locked: nobody else makes this row now.
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


def _checked(tokens_in: int, tokens_out: int, tokens_cache: int, cost_usd: Any) -> Spending:
    for name, value in (("in", tokens_in), ("out", tokens_out), ("cache", tokens_cache)):
        if not 0 <= value <= MOST_TOKENS:
            raise Refused(f"tokens_{name} must be from 0 to {MOST_TOKENS:,}, not {value:,}")
    if not 0 <= cost_usd <= MOST_USD:
        raise Refused(f"cost_usd must be from 0 to {MOST_USD:,}, not {cost_usd}")
    return Spending(tokens_in, tokens_out, tokens_cache, cost(cost_usd))


# --- who may start nothing ------------------------------------------------------------------


def settle_all(tenant_id: int, now: datetime) -> None:
    """After caps have changed, each of them is looked at again."""
    concerned = Agent.objects.filter(tenant=tenant_id).exclude(
        budget={}, over_budget_until__isnull=True
    )
    for agent_id in concerned.values_list("pk", flat=True):
        in_transaction(partial(_settle_agent, agent_id, now))
    settle_tenant(tenant_id, now)


def sweep(now: datetime) -> int:
    """Windows that have turned; and runs that began just as a cap was passed. How many changed."""
    turned = list(Agent.objects.filter(over_budget_until__lte=now).values_list("pk", flat=True))
    for agent_id in turned:
        in_transaction(partial(_settle_agent, agent_id, now))
    capped = Tenant.objects.filter(
        Q(settings__has_key="budget") | Q(over_budget_until__isnull=False)
    )
    for tenant_id in capped.values_list("pk", flat=True):
        settle_tenant(tenant_id, now)
    return len(turned) + _stop_late(now)


def _settle_agent(agent_id: int, now: datetime, ended_run: int | None = None) -> str:
    """Which of its caps is used up, in words; what follows from that has happened."""
    lock_agents([agent_id])
    agent = Agent.objects.select_related("tenant").get(pk=agent_id)
    if not agent.budget and agent.over_budget_until is None:
        return ""
    window = day_window(now, agent.tenant.zone)
    passed = _passed(agent.budget, "day", Usage.objects.filter(agent=agent), window)
    was, until = agent.over_budget_until, window.ends_at if passed else None
    if until == was:
        return passed
    Agent.objects.filter(pk=agent_id).update(over_budget_until=until)
    if until is None:
        journal.record(journal.JournalEntry("agent.within_budget", now, agent.tenant_id, agent_id))
    elif was is None:
        journal.record(
            journal.JournalEntry("agent.over_budget", now, agent.tenant_id, agent_id, None, passed)
        )
    if passed:
        others = _going_on().filter(agent=agent).exclude(pk=ended_run or 0)
        dispatch.request_stop(others, now, passed)
    return passed


def settle_tenant(tenant_id: int, now: datetime) -> str:
    """As above, for the project as a whole and its month."""
    passed, is_new = in_transaction(lambda: _settle_tenant(tenant_id, now))
    if is_new:
        # Not in the same transaction: agents are locked before tenants, never after.
        dispatch.request_stop(_going_on().filter(tenant=tenant_id), now, passed)
    return passed


def _settle_tenant(tenant_id: int, now: datetime) -> tuple[str, bool]:
    tenant = Tenant.objects.get(pk=tenant_id)
    caps = tenant.settings.get("budget", {})
    if not caps and tenant.over_budget_until is None:
        return "", False
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)
    window = month_window(now, tenant.zone)
    passed = _passed(caps, "month", Usage.objects.filter(tenant=tenant), window)
    was, until = tenant.over_budget_until, window.ends_at if passed else None
    if until == was:
        return passed, False
    Tenant.objects.filter(pk=tenant_id).update(over_budget_until=until)
    if until is None:
        journal.record(journal.JournalEntry("tenant.within_budget", now, tenant_id))
    elif was is None:
        journal.record(journal.JournalEntry("tenant.over_budget", now, tenant_id, detail=passed))
    return passed, bool(passed)


def _passed(caps: dict[str, Any], name: str, usage: "QuerySet[Usage]", window: Window) -> str:
    within = usage.filter(day__gte=window.first, day__lte=window.last)
    used = within.aggregate(tokens=Sum("tokens"), cost=Sum("cost_usd"))
    return used_up(caps, name, used["tokens"] or 0, used["cost"] or Decimal(0))


def _stop_late(now: datetime) -> int:
    """Who was admitted before the cap was passed may have begun after it."""
    over = Q(agent__over_budget_until__isnull=False) | Q(tenant__over_budget_until__isnull=False)
    return dispatch.request_stop(_going_on().filter(over), now, "budget: it is used up")


def _going_on() -> "QuerySet[Run]":
    return Run.objects.filter(
        state=Run.State.RUNNING, slot__isnull=False, stop_requested_at__isnull=True
    )
