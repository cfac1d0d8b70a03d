"""Budgets: the usage of runs is added up, and an agent at its cap waits for the next window."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from agents_app.budgets import holds
from agents_app.budgets.holds import SpentSums
from agents_app.errors import NotFound, Refused
from agents_app.harness.usage import Spending
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Agent, Run, RunEvent, Tenant, Usage
from agents_app.runs import dispatch
from tests.agents_app.fleet import NOON, Fleet, at, event_names, running, work_states

MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
APRIL = datetime(2026, 4, 1, tzinfo=UTC)
DAY_USED_UP = "budget: 100 of 100 tokens per day used"


def use(run: Run, tokens: int = 0, usd: float = 0, now: datetime = NOON) -> SpentSums:
    return holds.record_usage(run.pk, tokens, 0, 0, usd, now)


def fresh(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def of(agent: Agent) -> Agent:
    return Agent.objects.get(pk=agent.pk)


def cap_project(fleet: Fleet, **caps: float) -> None:
    Tenant.objects.filter(pk=fleet.tenant.pk).update(settings={"budget": caps, "timezone": "UTC"})


def told(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).order_by("pk").values_list("detail", flat=True))


# --- adding up ------------------------------------------------------------------------------


def test_reported_usage_is_added_to_the_run_and_to_the_day_of_its_agent(fleet: Fleet):
    run = running(fleet, fleet.agent())
    holds.record_usage(run.pk, 1, 20, 300, 0.5, NOON)
    spent = holds.record_usage(run.pk, 1, 0, 0, Decimal("0.25"), NOON)
    assert spent == SpentSums(Spending(2, 20, 300, Decimal("0.75")))
    row = fresh(run)
    assert (row.tokens_in, row.tokens_out, row.tokens_cache) == (2, 20, 300)
    assert row.cost_usd == Decimal("0.75")
    used = Usage.objects.get()
    assert (used.agent, used.day, used.tokens) == (run.agent, date(2026, 3, 2), 322)
    assert used.cost_usd == Decimal("0.75")


def test_the_day_is_that_of_the_projects_zone(fleet: Fleet):
    Tenant.objects.update(settings={"timezone": "Pacific/Auckland"})
    use(running(fleet, fleet.agent()), 5)
    assert Usage.objects.get().day == date(2026, 3, 3)


def test_a_run_that_has_ended_adds_nothing(fleet: Fleet):
    agent = fleet.agent(budget={"tokens_per_day": 1})
    job = fleet.start(fleet.enqueue(agent))
    fleet.finish(job)
    spent = holds.record_usage(job.run_id, 5, 5, 5, 1, NOON)
    assert spent == SpentSums(Spending())
    assert not Usage.objects.exists()
    assert of(agent).over_budget_until is None


@pytest.mark.parametrize("wrong", [(-1, 0), (10**13, 0), (0, -0.1), (0, 1e6), (0, float("nan"))])
def test_numbers_that_cannot_be_true_are_refused(fleet: Fleet, wrong):
    run = running(fleet, fleet.agent())
    with pytest.raises(Refused, match=r"must be from 0 to"):
        use(run, *wrong)
    assert fresh(run).tokens_in == 0


def test_a_run_that_does_not_exist_is_not_found(fleet: Fleet):
    with pytest.raises(NotFound):
        holds.record_usage(12345, 1, 1, 1, 0, NOON)


# --- a cap on a run -------------------------------------------------------------------------


def test_a_run_over_its_cap_is_asked_to_stop_once(fleet: Fleet):
    run = running(fleet, fleet.agent(budget={"tokens_per_run": 100}))
    assert use(run, 100).over == ""
    assert fresh(run).stop_requested_at is None
    over = "budget: 101 tokens used, at most 100 per run"
    assert use(run, 1, now=at(1)).over == over
    use(run, 1, now=at(2))
    assert (fresh(run).stop_requested_at, fresh(run).error) == (at(1), over)
    assert event_names(run.pk).count("run.over_budget") == 1


def test_other_runs_of_the_agent_go_on(fleet: Fleet):
    agent = fleet.agent(scale=2, budget={"usd_per_run": 1})
    one, other = running(fleet, agent), running(fleet, agent)
    use(one, usd=1.01)
    assert fresh(one).stop_requested_at
    assert fresh(other).stop_requested_at is None
    assert of(agent).over_budget_until is None


# --- a cap on a day -------------------------------------------------------------------------


def test_an_agent_that_has_used_up_its_day_stops_and_waits_for_midnight(fleet: Fleet):
    agent = fleet.agent(scale=2, budget={"tokens_per_day": 100})
    one, other = running(fleet, agent), running(fleet, agent)
    assert use(one, 60).over == ""
    assert use(other, 40).over == DAY_USED_UP
    assert of(agent).over_budget_until == MIDNIGHT
    for run in (one, other):
        assert (fresh(run).stop_requested_at, fresh(run).error) == (NOON, DAY_USED_UP)
    use(one, 5)
    assert told("agent.over_budget") == [DAY_USED_UP]


def test_its_schedules_are_skipped_and_everything_else_is_queued(fleet: Fleet):
    agent = fleet.agent(scale=5, budget={"tokens_per_day": 100})
    use(running(fleet, agent), 100)
    firing = fleet.fire(fleet.schedule(agent))
    assert (firing.outcome, firing.reason) == ("skipped", "budget")
    assert fleet.enqueue(agent, trigger="webhook").state == "queued"
    assert work_states(agent) == ["admitted", "queued"]


def test_others_are_not_concerned(fleet: Fleet):
    agent, other = fleet.agent(budget={"tokens_per_day": 1}), fleet.agent("other")
    use(running(fleet, agent), 100)
    assert fleet.enqueue(other).state == "admitted"


def test_a_run_that_ends_over_budget_does_not_hand_over_its_slot(fleet: Fleet):
    agent = fleet.agent(budget={"tokens_per_day": 100})
    job = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    holds.record_usage(job.run_id, 100, 0, 0, 0, NOON)
    assert fleet.finish(job, "stopped", hand_over=True) is None
    assert work_states(agent) == ["failed", "queued"]


def test_an_agent_over_its_budget_continues_the_next_day(fleet: Fleet):
    agent = fleet.agent(budget={"tokens_per_day": 100})
    job = fleet.start(fleet.enqueue(agent))
    holds.record_usage(job.run_id, 100, 0, 0, 0, NOON)
    fleet.finish(job, "stopped")
    fleet.enqueue(agent)
    reconcile(at(hours=11.9), "here")
    assert work_states(agent) == ["failed", "queued"]
    found = reconcile(MIDNIGHT, "here")
    assert (found["budgets_turned"], found["work_admitted"]) == (1, 1)
    assert of(agent).over_budget_until is None
    assert told("agent.within_budget") == [""]


def test_usage_after_midnight_belongs_to_the_new_day(fleet: Fleet):
    agent = fleet.agent(budget={"tokens_per_day": 100})
    run = running(fleet, agent)
    use(run, 99, now=at(hours=11.99))
    assert use(run, 99, now=MIDNIGHT).over == ""
    assert use(run, 1, now=at(hours=13)).over == DAY_USED_UP
    assert of(agent).over_budget_until == datetime(2026, 3, 4, tzinfo=UTC)
    assert [row.tokens for row in Usage.objects.order_by("day")] == [99, 100]


def test_a_run_that_began_as_the_cap_was_passed_is_stopped_by_the_sweep(fleet: Fleet):
    agent = fleet.agent(scale=2, budget={"tokens_per_day": 100})
    pending = fleet.enqueue(agent)
    use(running(fleet, agent), 100)
    late = fleet.start(pending)
    assert Run.objects.get(pk=late.run_id).stop_requested_at is None
    reconcile(at(10), "here")
    assert Run.objects.get(pk=late.run_id).stop_requested_at == at(10)


# --- a cap on the project's month -------------------------------------------------------------


def test_a_project_that_has_used_up_its_month_stops_all_its_agents(fleet: Fleet):
    cap_project(fleet, usd_per_month=10)
    one, other = running(fleet, fleet.agent()), running(fleet, fleet.agent("other"))
    Usage.objects.create(
        tenant=fleet.tenant, agent=one.agent, day=date(2026, 3, 1), cost_usd=Decimal(9)
    )
    Usage.objects.create(
        tenant=fleet.tenant, agent=one.agent, day=date(2026, 2, 28), cost_usd=Decimal(99)
    )
    assert use(one, usd=0.5).over == ""
    assert use(other, usd=0.5).over == "budget: $10.00 of $10.00 per month spent"
    assert Tenant.objects.get().over_budget_until == APRIL
    assert fresh(one).stop_requested_at
    assert fresh(other).stop_requested_at
    assert fleet.enqueue(fleet.agent("third")).state == "queued"
    assert len(told("tenant.over_budget")) == 1
    use(one, usd=0.5)
    assert len(told("tenant.over_budget")) == 1


def test_a_project_over_its_budget_continues_the_next_month(fleet: Fleet):
    cap_project(fleet, tokens_per_month=10)
    agent = fleet.agent(scale=5)
    use(running(fleet, agent), 10)
    item = fleet.enqueue(agent)
    assert item.state == "queued"
    reconcile(APRIL, "here")
    item.refresh_from_db()
    assert (item.state, Tenant.objects.get().over_budget_until) == ("admitted", None)
    assert told("tenant.within_budget") == [""]


def test_the_sweep_finds_a_cap_that_was_exceeded_unnoticed(fleet: Fleet):
    """The worker may have died between the report and the look at the project's sum."""
    cap_project(fleet, tokens_per_month=10)
    run = running(fleet, fleet.agent())
    Usage.objects.create(tenant=fleet.tenant, agent=run.agent, day=NOON.date(), tokens=11)
    reconcile(at(10), "here")
    assert Tenant.objects.get().over_budget_until == APRIL
    assert fresh(run).stop_requested_at == at(10)


def test_without_a_budget_reports_ask_for_nothing_and_the_sweep_changes_nothing(fleet: Fleet):
    agent = fleet.agent()
    use(running(fleet, agent), 10**9, usd=9999)
    assert holds.sweep(NOON) == 0
    assert of(agent).over_budget_until is None
    assert dispatch.admit_tenant(fleet.tenant.pk, NOON) == 0
