"""Pages of a large fleet: as many queries as those of a small one, and no longer for its size."""

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.admin.filters import MOST_AGENTS
from agents_app.models import Run, Tenant
from tests.agents_app.admin.test_admin import page_of_first, queries_of, table, text_of
from tests.agents_app.admin.visitors import fill, tell
from tests.agents_app.fleet import NOON, Fleet, at

FEW, MANY = 2, 40
PAGES = ("agent", "run", "schedule", "workitem", "worker")


def _history(fleet: Fleet, length: int) -> None:
    """One agent with so many runs, firings and work items, and a log of so many pieces."""
    agent = fleet.tenant.agents.order_by("pk")[0]
    schedule = agent.schedules.get()
    for number in range(length):
        fleet.fire(schedule, at(minutes=number))
        fleet.enqueue(agent, at(minutes=number), requested_by="ann")
    run = Run.objects.order_by("pk")[0]
    for _ in range(length):
        tell(run.pk, b"one more line\n")


@pytest.mark.parametrize("noun", PAGES)
def test_the_queries_of_a_page_do_not_grow_with_what_it_shows(
    boss: Client, fleet: Fleet, noun: str
):
    fill(fleet)
    _history(fleet, FEW)
    few = queries_of(boss, page_of_first(noun))
    Tenant.objects.all().delete()
    fleet.workers.clear()
    fleet.tenant = Tenant.objects.create(name="default")
    fill(fleet)
    _history(fleet, MANY)
    assert queries_of(boss, page_of_first(noun)) == few
    assert few <= 25


@pytest.mark.parametrize("noun", ["run", "workitem", "schedule", "firing"])
def test_a_large_fleet_is_not_listed_beside_every_list(boss: Client, fleet: Fleet, noun: str):
    agents = [fleet.agent(f"agent-{number:03}") for number in range(MOST_AGENTS)]
    assert f"{agents[-1]}</" in _filters(boss, table(noun))
    fleet.agent("one-more")
    assert "agent-001" not in _filters(boss, table(noun))


def test_what_was_chosen_in_a_large_fleet_still_counts_and_is_shown(boss: Client, fleet: Fleet):
    agents = [fleet.agent(f"agent-{number:03}") for number in range(MOST_AGENTS + 5)]
    for agent in agents[:2]:
        fleet.enqueue(agent, NOON)
    url = f"{reverse('admin:agents_app_run_changelist')}?agent__id__exact={agents[0].pk}"
    shown = boss.get(url)
    assert [run.agent for run in shown.context["cl"].result_list] == [agents[0]]
    assert "agent-000</" in _filters(boss, url)
    assert "agent-002</" not in _filters(boss, url)


def _filters(client: Client, url: str) -> str:
    """The links beside the list, without the list."""
    return " ".join(text_of(client, url).split()).replace(" </", "</").replace("> ", ">")
