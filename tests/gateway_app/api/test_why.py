"""/v1/schedules/{id}/fires, /why, /why/past and /retry, and /v1/workers."""

from datetime import timedelta

import pytest
import time_machine

from agents_app.models import Schedule, WorkItem
from agents_app.schedules import due, firings
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.calling import Api, api_of


@pytest.fixture
def schedule(fleet: Fleet) -> Schedule:
    """A run started at noon, and the firing after it was skipped because of it."""
    schedule = fleet.schedule(fleet.agent(), "* * * * *")
    for minute in range(2):
        due.claim_due_schedules(at(minutes=minute))
        firings.decide_firings(at(minutes=minute))
    schedule.refresh_from_db()
    return schedule


def test_the_next_fires_are_those_that_the_schedule_is_armed_for(reader: Api, schedule: Schedule):
    with time_machine.travel(at(minutes=1, seconds=5), tick=False):
        shown = reader.get(f"/schedules/{schedule.pk}/fires", count=3).json
    assert [fire["at"] for fire in shown["fires"]] == [
        (NOON + timedelta(minutes=minute)).timestamp() for minute in (2, 3, 4)
    ]


def test_a_paused_schedule_shows_its_fires_as_if_it_were_resumed(api: Api, schedule: Schedule):
    schedule.source = Schedule.Source.PERSON
    schedule.save()
    assert api.patch(f"/schedules/{schedule.pk}", {"status": "paused"}).status == 200
    shown = api.get(f"/schedules/{schedule.pk}/fires").json
    assert len(shown["fires"]) == 5 and shown["note"] == ""
    api.patch(f"/schedules/{schedule.pk}", {"status": "canceled"})
    shown = api.get(f"/schedules/{schedule.pk}/fires").json
    assert (shown["fires"], shown["note"]) == ([], "The schedule is canceled: no more fires.")


def test_an_explanation_has_obstacles_and_firings_with_their_work(reader: Api, schedule: Schedule):
    shown = reader.get(f"/schedules/{schedule.pk}/why").json
    assert "no_beat" in {each["code"] for each in shown["obstacles"]}
    skipped, started = shown["firings"]
    assert (skipped["outcome"], skipped["work"]) == ("skipped", None)
    item = WorkItem.objects.get()
    assert (started["work"]["work_item_id"], started["work"]["run_state"]) == (item.pk, "pending")
    assert started["work_text"] == started["work"]["text"]
    assert shown["counters"] == {"fired": 2, "skipped": 1, "missed": 0, "late": 0, "failures": 0}
    assert len(reader.get(f"/schedules/{schedule.pk}/why", limit=1).json["firings"]) == 1


def test_a_time_in_the_past_is_explained_with_the_firings_around_it(
    reader: Api, schedule: Schedule
):
    past = reader.get(f"/schedules/{schedule.pk}/why/past", at=NOON.timestamp()).json
    assert past["firing"]["outcome"] == "started" and past["after"]["outcome"] == "skipped"
    assert past["before"] is None and past["text"].startswith("Due at ")
    same = reader.get(f"/schedules/{schedule.pk}/why/past", at="2026-03-02T12:00:00Z")
    assert same.status == 200
    last = reader.get(f"/schedules/{schedule.pk}/why/past", at=253_402_300_798)
    assert (last.status, "choose another" in last.json["error"]["message"]) == (409, True)


def test_a_failed_firing_is_queued_again(api: Api, fleet: Fleet, schedule: Schedule):
    unused = fleet.schedule(fleet.agent("unused"), name="unused")
    assert api.post(f"/schedules/{unused.pk}/retry").status == 409
    WorkItem.objects.update(state=WorkItem.State.FAILED)
    reply = api.post(f"/schedules/{schedule.pk}/retry")
    assert reply.status == 202
    retried = WorkItem.objects.latest("pk")
    assert reply.json["work_item_id"] == retried.pk
    shown = api.get(f"/schedules/{schedule.pk}/why").json
    assert [work["work_item_id"] for work in shown["retried_work"]] == [retried.pk]


def test_a_retry_needs_the_scope_operate(reader: Api, schedule: Schedule):
    assert reader.post(f"/schedules/{schedule.pk}/retry").status == 403


def test_firings_say_what_became_of_their_work(reader: Api, schedule: Schedule):
    skipped, started = reader.get("/firings").json["firings"]
    assert skipped["work_text"] == "" and "waits for a worker" in started["work_text"]


def test_workers_are_shown_to_the_default_tenant_only(
    fleet: Fleet, others: Fleet, reader: Api, schedule: Schedule
):
    worker = fleet.worker()
    (shown,) = reader.get("/workers").json["workers"]
    assert (shown["name"], shown["pid"], shown["host"]) == (worker.name, worker.pid, worker.host)
    assert api_of(others.tenant, "admin").get("/workers").status == 403


def test_the_scheduler_names_the_processes_that_do_not_run(reader: Api):
    shown = reader.get("/scheduler").json
    assert shown["missing_processes"] == ["worker", "beat"]
    assert shown["schema_problem"] == ""


def test_runs_are_filtered_by_their_work_item_and_schedules_by_name(
    fleet: Fleet, reader: Api, schedule: Schedule
):
    item = WorkItem.objects.get()
    assert [run["work_item_id"] for run in reader.get("/runs", work_item_id=item.pk).json["runs"]]
    assert reader.get("/runs", work_item_id=item.pk + 1).status == 404
    fleet.schedule(fleet.agent("other"), name="other")
    named = reader.get("/schedules", name="main").json["schedules"]
    assert [each["id"] for each in named] == [schedule.pk]
    assert named[0]["disabled_because"] == ""
