"""PATCH /v1/schedules/{id}: edits and changes of the status; previews."""

from datetime import timedelta
from typing import Any

import pytest

from agents_app.models import Firing, RunEvent, Schedule
from agents_app.schedules import due
from gateway_app.api.fields import utc_now
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.calling import HOUR, Api


@pytest.fixture
def schedule(fleet: Fleet) -> Schedule:
    """An hourly schedule that is due."""
    agent = fleet.agent()
    values = {"text": "0 * * * *", "source": "person"}
    return fleet.schedule(agent, "0 * * * *", **values, next_fire_at=NOON)


@pytest.fixture
def one_shot(fleet: Fleet) -> Schedule:
    agent = fleet.agent("once")
    at = {"text": "at noon", "one_shot": True, "next_fire_at": NOON}
    return fleet.schedule(agent, "at 2026-03-02T12:00:00Z", **at)


def changed(api: Api, schedule: Schedule, /, **body: Any) -> Any:
    reply = api.patch(f"/schedules/{schedule.pk}", body)
    assert reply.status == 200, reply.json
    schedule.refresh_from_db()
    return reply.json


# --- edits ----------------------------------------------------------------------------------


def test_a_new_phrase_changes_the_next_fire(api: Api, schedule: Schedule):
    shown = changed(api, schedule, schedule="in 2 hours", message="other")
    assert abs(shown["next_fire_at"] - utc_now().timestamp() - 2 * HOUR) < 5
    assert (shown["schedule"], shown["kind"], shown["message"]) == ("in 2 hours", "once", "other")
    edited = RunEvent.objects.get(name="schedule.edited")
    assert edited.detail == "main: token ci: prompt, text"


def test_a_new_policy_keeps_the_next_fire(api: Api, schedule: Schedule):
    shown = changed(api, schedule, overlap="queue", pause_after_failures=2, name="hourly")
    assert shown["next_fire_at"] == NOON.timestamp()
    assert (shown["overlap"], shown["pause_after_failures"]) == ("queue", 2)
    assert shown["name"] == "hourly"


def test_null_and_missing_fields_change_nothing(api: Api, schedule: Schedule):
    before = api.get(f"/schedules/{schedule.pk}").json
    shown = changed(api, schedule, message=None, overlap=None, status=None)
    assert shown == before
    assert not RunEvent.objects.filter(name="schedule.edited").exists()


def test_a_schedule_moves_to_another_agent(fleet: Fleet, api: Api, schedule: Schedule):
    other = fleet.agent("other")
    assert changed(api, schedule, agent="other")["agent"] == "other"
    assert schedule.agent == other


def test_a_schedule_does_not_move_to_an_agent_of_another_tenant(
    others: Fleet, api: Api, schedule: Schedule
):
    others.agent("theirs")
    reply = api.patch(f"/schedules/{schedule.pk}", {"agent": "theirs"})
    assert (reply.status, reply.message) == (404, "agent 'theirs' not found in tenant catalog")


def test_the_name_of_another_schedule_is_refused(fleet: Fleet, api: Api, schedule: Schedule):
    fleet.schedule(schedule.agent, name="taken")
    reply = api.patch(f"/schedules/{schedule.pk}", {"name": "taken"})
    assert reply.status == 409
    assert "choose another name" in reply.message


@pytest.mark.django_db(transaction=True)
def test_one_invalid_change_cancels_all_changes(api: Api, schedule: Schedule):
    """The edit is valid, the status is not."""
    body = {"message": "new", "status": "completed"}
    reply = api.patch(f"/schedules/{schedule.pk}", body)
    assert reply.status == 409
    schedule.refresh_from_db()
    assert schedule.prompt == ""


def test_an_invalid_phrase_changes_nothing(api: Api, schedule: Schedule):
    reply = api.patch(f"/schedules/{schedule.pk}", {"schedule": "61 * * * *"})
    assert (reply.status, reply.error["code"]) == (400, "bad_trigger")
    schedule.refresh_from_db()
    assert schedule.expression == "0 * * * *"


# --- status ---------------------------------------------------------------------------------


def test_an_unknown_status_is_refused_with_the_known_ones(api: Api, schedule: Schedule):
    reply = api.patch(f"/schedules/{schedule.pk}", {"status": "bogus"})
    assert (reply.status, reply.message) == (
        400,
        "status must be one of: active, paused, canceled, completed, failed",
    )


def test_a_resumed_recurring_schedule_fires_at_its_next_time(api: Api, schedule: Schedule):
    changed(api, schedule, status="paused", pause_note="holidays")
    assert (schedule.state, schedule.pause_note) == ("paused", "holidays")
    shown = changed(api, schedule, status="active")
    assert shown["status"] == "active"
    assert 0 < shown["next_fire_at"] - utc_now().timestamp() <= HOUR
    assert due.claim_due_schedules(utc_now()) == 0


def test_a_one_shot_whose_time_has_passed_fires_when_it_is_resumed(api: Api, one_shot: Schedule):
    changed(api, one_shot, status="paused")
    changed(api, one_shot, status="active")
    assert due.claim_due_schedules(utc_now()) == 1
    assert Firing.objects.get().schedule == one_shot


def test_a_schedule_resumed_with_at_once_fires_now(api: Api, schedule: Schedule):
    changed(api, schedule, status="paused")
    changed(api, schedule, status="active", at_once=True)
    assert due.claim_due_schedules(utc_now()) == 1


def test_a_pause_may_have_an_end(api: Api, schedule: Schedule):
    until = int((utc_now() + timedelta(days=1)).timestamp())
    assert changed(api, schedule, status="paused", pause_until=until)["pause_until"] == until
    reply = api.patch(f"/schedules/{schedule.pk}", {"pause_until": until})
    assert (reply.status, reply.error["code"]) == (400, "invalid")


def test_an_end_in_the_past_is_refused(api: Api, schedule: Schedule):
    body = {"status": "paused", "pause_until": 1}
    assert api.patch(f"/schedules/{schedule.pk}", body).status == 409


def test_a_canceled_schedule_stays_canceled(api: Api, schedule: Schedule):
    assert changed(api, schedule, status="canceled")["next_fire_at"] is None
    assert changed(api, schedule, status="canceled")["status"] == "canceled"
    for status in ("active", "paused", "completed"):
        reply = api.patch(f"/schedules/{schedule.pk}", {"status": status})
        assert reply.status == 409
        assert reply.message.startswith("the schedule is canceled: ")
    assert api.patch(f"/schedules/{schedule.pk}", {"message": "m"}).status == 409


def test_a_schedule_that_a_file_defines_is_only_paused_and_resumed(api: Api, schedule: Schedule):
    Schedule.objects.filter(pk=schedule.pk).update(source="file")
    at = f"/schedules/{schedule.pk}"
    for refused in (
        api.patch(at, {"status": "canceled"}),
        api.patch(at, {"message": "other"}),
        api.delete(at),
    ):
        assert (refused.status, refused.error["code"]) == (409, "refused")
        assert "main is defined in agents/reporter/SKILL.md" in refused.message
    assert changed(api, schedule, status="paused")["status"] == "paused"
    assert changed(api, schedule, status="active")["status"] == "active"


def test_the_status_completed_cannot_be_set(api: Api, schedule: Schedule):
    for status in ("completed", "failed"):
        reply = api.patch(f"/schedules/{schedule.pk}", {"status": status})
        assert (reply.status, reply.error["code"]) == (409, "refused")
    schedule.refresh_from_db()
    assert schedule.state == "active"


# --- previews -------------------------------------------------------------------------------


def test_a_preview_gives_the_next_fires_and_saves_nothing(reader: Api, schedule: Schedule):
    body = {"schedule": "every day at 09:00", "timezone": "Europe/Berlin", "count": 3}
    shown = reader.post("/schedules/preview", body).json
    assert (shown["expression"], shown["timezone"]) == ("0 9 * * *", "Europe/Berlin")
    assert len(shown["fires"]) == 3
    assert all("09:00" in fire["local"] for fire in shown["fires"])
    gaps = {b["at"] - a["at"] for a, b in zip(shown["fires"], shown["fires"][1:], strict=False)}
    assert gaps <= {23 * HOUR, 24 * HOUR, 25 * HOUR}
    assert shown["clock_change"]["text"]
    assert Schedule.objects.count() == 1


def test_a_preview_takes_and_refuses_what_a_new_schedule_does(
    fleet: Fleet, api: Api, schedule: Schedule
):
    fleet.agent("tokyo", timezone="Asia/Tokyo")
    body = {
        "schedule": "every day at 09:00",
        "message": "summarise",
        "agent": "tokyo",
        "name": "daily",
        "overlap": "queue",
        "catch_up": "all",
        "jitter_seconds": 5,
    }
    shown = api.post("/schedules/preview", body)
    assert (shown.status, shown.json["timezone"]) == (200, "Asia/Tokyo")
    made = api.post("/schedules", body).json
    assert made["next_fire_at"] == shown.json["fires"][0]["at"]
    for wrong in ({"jitter_percent": 5}, {"agent": "missing"}, {"overlap": "never"}):
        replies = [api.post(path, body | wrong) for path in ("/schedules/preview", "/schedules")]
        assert replies[0].status == replies[1].status != 200, wrong
        assert replies[0].error == replies[1].error


def test_a_preview_of_an_invalid_phrase_lists_examples(reader: Api):
    reply = reader.post("/schedules/preview", {"schedule": "now and then"})
    assert (reply.status, reply.error["code"]) == (400, "bad_trigger")
    assert "every" in reply.error["accepted"]
    assert reader.post("/schedules/preview", {"schedule": " "}).status == 400
