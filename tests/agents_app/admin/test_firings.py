"""The list of firings in the admin: the outcome of every due time."""

from typing import Any

from django.test import Client
from django.urls import reverse

from agents_app.models import Firing, Run
from tests.agents_app.fleet import Fleet, at

LIST = "/admin/firings/"


def listed(client: Client, **filters: str) -> list[int]:
    response = client.get(LIST, filters)
    assert response.status_code == 200
    return [firing.pk for firing in response.context["cl"].result_list]


def text_of(client: Client, **filters: str) -> str:
    return client.get(LIST, filters).content.decode()


def decided(firing: Firing, **columns: Any) -> Firing:
    Firing.objects.filter(pk=firing.pk).update(**columns)
    return firing


def test_a_firing_shows_its_outcome_and_leads_to_its_last_run(boss: Client, fleet: Fleet):
    firing = fleet.fire(fleet.schedule(fleet.agent()))
    run = Run.objects.get()
    shown = text_of(boss)
    assert "dv-started" in shown
    assert f'href="{reverse("admin:agents_app_run_change", args=[run.pk])}"' in shown
    page = boss.get(reverse("admin:agents_app_firing_change", args=[firing.pk]))
    assert reverse("admin:agents_app_run_change", args=[run.pk]) in page.content.decode()


def test_a_skipped_firing_says_why_in_a_sentence(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=1))
    fleet.enqueue(schedule.agent)
    fleet.fire(schedule)
    assert "No slot was free" in text_of(boss)


def test_a_firing_shows_how_long_after_its_time_it_was_decided(boss: Client, fleet: Fleet):
    firing = fleet.firing(fleet.schedule(fleet.agent()))
    decided(firing, decide_at=at(seconds=7))
    assert "7.0 s later" in text_of(boss)
    assert "dv-late" not in text_of(boss)
    decided(firing, recorded_at=at(minutes=5), decide_at=at(minutes=5))
    assert "5 min 00 s later" in text_of(boss)
    assert "dv-late" in text_of(boss)


def test_the_ledger_is_filtered_by_outcome_and_reason_and_searched_by_schedule(
    boss: Client, fleet: Fleet
):
    agent = fleet.agent()
    main, nightly = fleet.schedule(agent), fleet.schedule(agent, name="nightly")
    missed = decided(fleet.firing(main), outcome="skipped", reason="missed").pk
    paused = decided(fleet.firing(nightly), outcome="skipped", reason="paused").pk
    open_one = fleet.firing(nightly, at(minutes=1)).pk
    assert listed(boss) == [open_one, paused, missed]
    assert listed(boss, outcome__exact="skipped") == [paused, missed]
    assert listed(boss, outcome__exact="") == [open_one]
    assert listed(boss, reason__exact="missed") == [missed]
    assert listed(boss, q="nightly") == [open_one, paused]
