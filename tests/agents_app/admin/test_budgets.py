"""Usage of agents and used-up budgets on the overview."""

from decimal import Decimal

from django.test import Client

from agents_app.models import Agent, Tenant, Usage
from tests.agents_app.admin.test_admin import page_of_first, table, text_of
from tests.agents_app.fleet import NOON, Fleet, at


def test_what_agents_used_is_shown_by_day(boss: Client, fleet: Fleet):
    Usage.objects.create(
        tenant=fleet.tenant,
        agent=fleet.agent("spender"),
        day=NOON.date(),
        tokens=1_234_567,
        cost_usd=Decimal("3.5"),
    )
    page = text_of(boss, table("usage"))
    for said in ("spender", "1,234,567", "$3.50"):
        assert said in page
    text_of(boss, page_of_first("usage"))


def test_an_agent_that_has_used_up_its_budget_is_shown_as_such(boss: Client, fleet: Fleet):
    fleet.agent("spender", budget={"tokens_per_day": 5}, over_budget_until=at(hours=12))
    assert "over budget" in text_of(boss, table("agent"))
    assert "tokens_per_day" in text_of(boss, page_of_first("agent"))
    Agent.objects.update(over_budget_until=None)
    assert "over budget" not in text_of(boss, table("agent"))


def test_the_overview_warns_of_a_project_that_has_used_up_its_budget(boss: Client, fleet: Fleet):
    Tenant.objects.update(over_budget_until=at(hours=12))
    page = text_of(boss, "/admin/")
    assert "The budget of default is used up until 2026-03-03 00:00 UTC" in page
