"""Explanations of schedules on their pages and in the list, and actions on schedules."""

from typing import Any

import pytest
import time_machine
from django.test import Client
from django.urls import reverse

from agents_app.admin.summaries import ScheduleSummary
from agents_app.models import Firing, Run, Schedule, Tenant
from tests.agents_app.admin.test_schedules import page_of
from tests.agents_app.admin.test_verbs import act, act_on_selected, told, url_of
from tests.agents_app.fleet import NOON, Fleet, at, live_run

LIST = "/admin/schedules/"
S = Schedule.State


def listed(client: Client, **filters: str) -> list[str]:
    response = client.get(LIST, filters)
    assert response.status_code == 200
    return [schedule.name for schedule in response.context["cl"].result_list]


def labels(client: Client, schedule: Schedule) -> list[str]:
    return [verb.name for verb, _ in client.get(page_of(schedule)).context["act_buttons"]]


# --- the page -------------------------------------------------------------------------------


@time_machine.travel(NOON, tick=False)
def test_the_page_shows_the_state_and_the_counters(boss: Client, fleet: Fleet):
    counts: dict[str, Any] = {"fire_count": 41, "skipped_count": 42, "missed_count": 43}
    counts |= {"late_count": 44, "failure_count": 45}
    schedule = fleet.schedule(fleet.agent(), next_fire_at=at(minutes=1), **counts)
    page = boss.get(page_of(schedule)).content.decode()
    # No beat and no worker are alive in this test.
    assert "The schedule is active and due next at Mon 02 Mar 2026 12:01 UTC, but would" in page
    for number, label in enumerate(("Fired", "Skipped", "Missed", "Late", "Failures in a row"), 41):
        assert f"<dt>{label}</dt><dd>{number}</dd>" in page


def test_the_page_says_what_stands_in_the_way(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), state="paused", pause_note="<holidays>")
    page = boss.get(page_of(schedule)).content.decode()
    assert "The schedule is paused: &lt;holidays&gt;" in page


def test_every_firing_shows_its_reason_and_leads_to_its_run(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=1))
    fleet.fire(schedule)
    run = Run.objects.get()
    fleet.fire(schedule, at(minutes=1))
    page = boss.get(page_of(schedule)).content.decode()
    assert "A slot was free" in page
    assert "The schedule&#x27;s earlier work was not finished" in page
    assert f'href="{reverse("admin:agents_app_run_change", args=[run.pk])}"' in page


def test_the_page_leads_to_all_firings_of_the_schedule_alone(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    other = fleet.schedule(schedule.agent, name="other")
    mine = fleet.firing(schedule)
    fleet.firing(other)
    url = f"/admin/firings/?schedule__id__exact={schedule.pk}"
    assert url in boss.get(page_of(schedule)).content.decode()
    assert [row.pk for row in boss.get(url).context["cl"].result_list] == [mine.pk]


# --- the list -------------------------------------------------------------------------------


def test_the_list_shows_when_as_it_was_written(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent(), "0 9 * * 1", text="every <monday> at 09:00")
    assert "every &lt;monday&gt; at 09:00" in boss.get(LIST).content.decode()


def test_the_list_of_the_operator_has_the_schedules_of_all_tenants(boss: Client, fleet: Fleet):
    fleet.schedule(fleet.agent(), name="mine")
    acme = Fleet(Tenant.objects.create(name="acme"))
    acme.schedule(acme.agent(), name="theirs")
    assert sorted(listed(boss)) == ["mine", "theirs"]


def test_the_list_is_filtered_by_state_source_and_whether_it_fires_once(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    fleet.schedule(agent, name="a", state="paused")
    fleet.schedule(agent, name="b", source="file")
    fleet.schedule(agent, name="c", one_shot=True)
    assert listed(boss) == ["a", "b", "c"]
    assert listed(boss, state__exact="paused") == ["a"]
    assert listed(boss, source__exact="file") == ["b"]
    assert listed(boss, one_shot__exact="1") == ["c"]
    assert listed(boss, q="b") == ["b"]


def last_outcome(client: Client) -> str:
    (schedule,) = client.get(LIST).context["cl"].result_list
    return ScheduleSummary(schedule, NOON).outcome


def test_the_last_outcome_is_the_last_runs_or_why_there_was_none(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=1))
    assert "dv-nothing" in last_outcome(boss)
    fleet.fire(schedule)
    run = Run.objects.get()
    assert "pending" in last_outcome(boss)
    assert reverse("admin:agents_app_run_change", args=[run.pk]) in last_outcome(boss)
    fleet.fire(schedule, at(minutes=1))
    assert "skipped" in last_outcome(boss)
    assert "already running" in last_outcome(boss)
    fleet.finish(fleet.start(run.work_item), "failed", at(minutes=2), error="no")
    schedule.refresh_from_db()
    act(boss, schedule, "retry")
    assert "pending" in last_outcome(boss)


# --- verbs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "verbs"),
    [
        ({}, ["pause", "cancel"]),
        ({"state": "paused"}, ["resume", "resume_now", "cancel"]),
        ({"failure_count": 1}, ["pause", "retry", "cancel"]),
        ({"state": "failed", "one_shot": True}, ["retry", "cancel"]),
        ({"state": "canceled", "skipped_count": 1}, []),
        ({"source": "file", "skipped_count": 1}, ["pause", "retry"]),
        ({"source": "file", "state": "paused"}, ["resume", "resume_now"]),
    ],
)
def test_the_page_offers_what_makes_sense(
    boss: Client, fleet: Fleet, columns: dict[str, Any], verbs: list[str]
):
    assert labels(boss, fleet.schedule(fleet.agent(), **columns)) == verbs


@time_machine.travel(NOON, tick=False)
def test_a_schedule_is_paused_until_a_time_in_its_own_zone(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), timezone="Asia/Tokyo")
    said = act(boss, schedule, "pause", text="holidays", until="tomorrow at 09:00")
    assert "paused until 2026-03-03 00:00:00 UTC" in said
    assert (schedule.state, schedule.pause_note) == ("paused", "holidays")
    assert schedule.pause_until == at(hours=12)


@pytest.mark.parametrize("until", ["every day", "15m", "whenever", "on 2020-01-01"])
def test_a_pause_until_what_is_no_moment_to_come_is_refused(boss: Client, fleet: Fleet, until: str):
    schedule = fleet.schedule(fleet.agent())
    assert until in act(boss, schedule, "pause", until=until)
    assert schedule.state == S.ACTIVE
    assert told("schedule.paused") == []


@time_machine.travel(NOON, tick=False)
def test_a_resumed_schedule_fires_at_once_only_if_asked_to(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 9 * * *", state="paused")
    assert "fires at its next time" in act(boss, schedule, "resume")
    assert schedule.next_fire_at == at(hours=21)
    act(boss, schedule, "pause")
    assert "fires now" in act(boss, schedule, "resume_now")
    assert schedule.next_fire_at == NOON
    assert "only a paused" in act(boss, schedule, "resume_now")


def test_a_canceled_schedule_takes_with_it_what_waits(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=1), overlap="queue")
    live_run(fleet.enqueue(schedule.agent))
    fleet.fire(schedule)
    assert "1 queued work item dropped" in act(boss, schedule, "cancel")
    assert (schedule.state, schedule.next_fire_at) == ("canceled", None)
    assert "canceled already" in act(boss, schedule, "cancel")


def test_a_schedule_of_a_file_is_not_canceled_but_paused_resumed_and_retried(
    boss: Client, fleet: Fleet
):
    schedule = fleet.schedule(fleet.agent(), source="file")
    assert "remove it there" in act(boss, schedule, "cancel")
    assert schedule.state == S.ACTIVE
    act(boss, schedule, "pause")
    act(boss, schedule, "resume")
    assert schedule.state == S.ACTIVE
    Firing.objects.filter(pk=fleet.firing(schedule).pk).update(outcome="skipped", reason="missed")
    assert "retry queued:" in act(boss, schedule, "retry")


def test_a_schedule_that_has_not_failed_is_not_retried(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    assert "no work of main failed" in act(boss, schedule, "retry")
    assert not schedule.agent.work_items.exists()


def test_the_list_acts_by_the_same_verbs(boss: Client, fleet: Fleet):
    agent = fleet.agent()
    schedules = [fleet.schedule(agent, name=name) for name in ("a", "b")]
    file = fleet.schedule(agent, name="c", source="file")
    assert act_on_selected(boss, "pause", *schedules, file).count(" paused") == 3
    assert act_on_selected(boss, "resume", *schedules, file).count("resumed") == 3
    assert act_on_selected(boss, "retry", *schedules).count("nothing to retry") == 2
    said = act_on_selected(boss, "cancel", *schedules, file)
    assert said.count(" canceled") == 2
    assert "reporter/c: c is defined in agents/reporter/SKILL.md" in said
    assert list(agent.schedules.order_by("name").values_list("state", flat=True)) == [
        *("canceled", "canceled", "active")
    ]


def test_a_visitor_can_do_none_of_it(visitor: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), skipped_count=1)
    assert labels(visitor, schedule) == []
    for verb in ("pause", "resume", "resume_now", "cancel", "retry"):
        assert visitor.post(url_of(schedule, verb)).status_code == 403
        act_form = {"action": f"{verb}_selected", "_selected_action": [schedule.pk], "index": "0"}
        visitor.post(LIST, act_form)
    schedule.refresh_from_db()
    assert schedule.state == S.ACTIVE
    assert not schedule.agent.work_items.exists()
