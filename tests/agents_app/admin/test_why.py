"""Explanations why a schedule did not run, on its page and in the list of firings."""

from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.models import Firing, Run, Schedule
from tests.agents_app.admin.test_schedules import page_of
from tests.agents_app.fleet import NOON, Fleet, at

LEDGER = "/admin/firings/"


def asked(client: Client, schedule: Schedule, text: str) -> str:
    response = client.get(
        reverse("admin:agents_app_schedule_why", args=[schedule.pk]), {"at": text}
    )
    assert response.status_code == 200
    return response.content.decode()


def old(fleet: Fleet, **columns: Any) -> Schedule:
    schedule = fleet.schedule(fleet.agent(scale=1), "0 9 * * *", **columns)
    Schedule.objects.filter(pk=schedule.pk).update(created_at=at(days=-30))
    return schedule


@time_machine.travel(at(hours=1), tick=False)
def test_a_time_that_is_over_is_answered_with_what_became_of_it(boss: Client, fleet: Fleet):
    schedule = old(fleet)
    fleet.fire(schedule)
    fleet.fire(schedule, at(minutes=30))
    run = Run.objects.get()
    started, skipped = asked(boss, schedule, "12:00"), asked(boss, schedule, "30 minutes ago")
    assert "Due at Mon 02 Mar 2026 12:00 UTC: started, a slot was free" in started
    assert reverse("admin:agents_app_run_change", args=[run.pk]) in started
    assert "earlier work was not finished" in skipped


@time_machine.travel(NOON, tick=False)
def test_a_time_at_which_nothing_was_due_names_the_firings_around_it(boss: Client, fleet: Fleet):
    schedule = old(fleet)
    fleet.fire(schedule, at(hours=-3))
    answer = asked(boss, schedule, "yesterday at 17:00")
    assert "The schedule was not due at that time" in answer
    assert "Next firing: Mon 02 Mar 2026 09:00 UTC, started" in answer


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Enter a time"),
        ("<b>", "Cannot read &quot;&lt;b&gt;&quot;"),
        ("every day", "this is a recurring schedule; give a single time"),
        ("999999999 weeks ago", "is too long"),
        ("900000 days ago", "before the year 1"),
    ],
)
def test_what_is_no_time_is_said_to_be_none(boss: Client, fleet: Fleet, text: str, said: str):
    answer = asked(boss, old(fleet), text)
    assert "dv-error" in answer
    assert said.lower() in answer.lower()


def test_the_explanation_requires_the_permission_to_see_schedules(
    visitor: Client, client: Client, db: None
):
    url = reverse("admin:agents_app_schedule_why", args=[1])
    assert visitor.get(url).status_code == 404
    assert client.get(url)["Location"].startswith("/admin/login/")


# --- the ledger -----------------------------------------------------------------------------


def test_the_ledger_is_filtered_by_agent(boss: Client, fleet: Fleet):
    one, two = fleet.agent("one"), fleet.agent("two")
    mine = fleet.firing(fleet.schedule(one))
    fleet.firing(fleet.schedule(two))
    found = boss.get(LEDGER, {"schedule__agent__id__exact": one.pk}).context["cl"].result_list
    assert [firing.pk for firing in found] == [mine.pk]


def test_the_ledger_says_every_outcome_in_a_sentence(boss: Client, fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    sentences = {
        "": "Recorded, and it is decided at",
        "queued": "No slot was free, so its work was queued",
        "failed": "Its work item could not be created",
        "skipped": "The budget was used up",
    }
    for minute, outcome in enumerate(sentences):
        firing = fleet.firing(schedule, at(minutes=minute))
        reason = "budget" if outcome == "skipped" else ""
        Firing.objects.filter(pk=firing.pk).update(outcome=outcome, reason=reason)
    page = boss.get(LEDGER).content.decode()
    assert [said for said in sentences.values() if said not in page] == []


def test_an_empty_ledger_looks_for_its_first_row_and_a_full_one_is_followed(
    boss: Client, fleet: Fleet
):
    waits = 'data-live="firing run work schedule"'
    assert waits in boss.get(LEDGER).content.decode()
    fleet.firing(fleet.schedule(fleet.agent()))
    page = boss.get(LEDGER).content.decode()
    assert waits not in page and 'data-events="firing run work schedule"' in page


@pytest.mark.parametrize("where", ["ledger", "page"])
def test_many_firings_need_no_more_queries(boss: Client, fleet: Fleet, where: str):
    schedule = fleet.schedule(fleet.agent(scale=1), overlap="queue")
    url = LEDGER if where == "ledger" else page_of(schedule)
    fleet.fire(schedule)
    fleet.fire(schedule, at(seconds=1))
    boss.get(url)  # what Django asks only once
    with CaptureQueriesContext(connection) as few:
        assert boss.get(url).status_code == 200
    for minute in range(1, 12):
        fleet.fire(schedule, at(minutes=minute))
    with CaptureQueriesContext(connection) as many:
        assert boss.get(url).status_code == 200
    assert len(many) == len(few)
