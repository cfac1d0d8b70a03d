"""/v1/schedules: create and show, with the field names of Arbiter."""

from typing import Any

import pytest

from agents_app.models import Agent, RunEvent, Schedule
from gateway_app.api.fields import utc_now
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.calling import HOUR, Api
from tests.gateway_app.api.firing import fire_now

SOON = {"schedule": "in 1 hour", "message": "review the deploy", "agent": "reporter"}
MONDAYS = {"schedule": "every monday at 09:00", "message": "summarise", "agent": "reporter"}


def now() -> float:
    return utc_now().timestamp()


# --- creating -------------------------------------------------------------------------------


def test_a_phrase_and_a_message_make_a_schedule_that_fires_once(fleet: Fleet, api: Api):
    agent = fleet.agent()
    made = api.post("/schedules", SOON)
    assert made.status == 201
    shown = made.json
    assert shown["id"] == agent.schedules.get().pk
    assert (shown["agent"], shown["schedule"]) == ("reporter", "in 1 hour")
    assert (shown["message"], shown["kind"]) == ("review the deploy", "once")
    assert (shown["status"], shown["run_count"]) == ("active", 0)
    assert (shown["last_run_at"], shown["last_run_id"]) == (None, None)
    assert abs(shown["next_fire_at"] - now() - HOUR) < 5
    assert isinstance(shown["next_fire_at"], int)
    assert RunEvent.objects.get(name="schedule.created").detail == "in-1-hour: token ci"


def test_a_recurring_schedule_is_created_with_all_policies(fleet: Fleet, api: Api):
    fleet.agent()
    policies = {
        "timezone": "Europe/Berlin",
        "overlap": "queue_one",
        "catch_up": "all",
        "catch_up_window_seconds": 600,
        "jitter_seconds": 30.5,
        "gap": "skip",
        "overlap_hour": "both",
        "pause_after_failures": 3,
        "name": "mondays",
    }
    shown = api.post("/schedules", MONDAYS | policies).json
    assert {name: shown[name] for name in policies} == policies
    assert (shown["kind"], shown["expression"]) == ("recurring", "0 9 * * 1")


def test_the_same_phrase_twice_makes_two_schedules(fleet: Fleet, api: Api):
    fleet.agent()
    assert [api.post("/schedules", SOON).status for _ in range(2)] == [201, 201]
    assert len(set(Schedule.objects.values_list("name", flat=True))) == 2


def test_a_name_that_is_in_use_is_refused(fleet: Fleet, api: Api):
    fleet.agent()
    api.post("/schedules", MONDAYS | {"name": "mine"})
    assert api.post("/schedules", MONDAYS | {"name": "mine"}).status == 409


def test_the_only_agent_need_not_be_named(fleet: Fleet, api: Api):
    fleet.agent()
    body = {name: SOON[name] for name in ("schedule", "message")}
    assert api.post("/schedules", body).json["agent"] == "reporter"
    fleet.agent("another")
    reply = api.post("/schedules", body)
    assert (reply.status, reply.error["code"]) == (400, "invalid")


def test_an_invalid_phrase_is_answered_with_examples(fleet: Fleet, api: Api):
    fleet.agent()
    reply = api.post("/schedules", SOON | {"schedule": "when it rains"})
    assert (reply.status, reply.error["code"]) == (400, "bad_trigger")
    assert reply.message.startswith('cannot read "when it rains" at "when" (character 1): write ')
    assert "every monday" in reply.error["accepted"]
    assert len(reply.error["accepted"].splitlines()) > 5
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    "body", [{}, {"schedule": "daily"}, {"message": "m"}, {"schedule": " ", "message": "m"}]
)
def test_both_required_fields_are_named_when_one_is_missing(
    fleet: Fleet, api: Api, body: dict[str, Any]
):
    fleet.agent()
    reply = api.post("/schedules", body)
    assert (reply.status, reply.message) == (400, "required fields: schedule (NL phrase), message")


def test_a_schedule_for_an_unknown_agent_is_refused(fleet: Fleet, others: Fleet, api: Api):
    others.agent("theirs")
    for name in ("x", "theirs", "No Name"):
        reply = api.post("/schedules", SOON | {"agent": name})
        assert (reply.status, reply.message) == (
            404,
            f"agent '{name}' not found in tenant catalog",
        )


def test_a_time_zone_that_does_not_exist_is_refused(fleet: Fleet, api: Api):
    fleet.agent()
    reply = api.post("/schedules", MONDAYS | {"timezone": "Europe/Berlim"})
    assert reply.status == 400
    assert "Europe/Berlin" in reply.message


def test_the_same_idempotency_key_makes_one_schedule(fleet: Fleet, api: Api):
    fleet.agent()
    first, second = (api.post("/schedules", SOON, Idempotency_Key="k") for _ in range(2))
    assert (first.status, second.status) == (201, 200)
    assert first.json["id"] == second.json["id"]
    reply = api.post("/schedules", SOON | {"message": "other"}, Idempotency_Key="k")
    assert (reply.status, reply.error["code"]) == (409, "idempotency_key_reused")
    assert Schedule.objects.count() == 1


# --- showing --------------------------------------------------------------------------------


def test_a_schedule_that_has_fired_shows_its_last_run(fleet: Fleet, api: Api):
    fleet.agent(scale=2)
    key = api.post("/schedules", MONDAYS | {"overlap": "queue"}).json["id"]
    schedule = Schedule.objects.get()
    runs = [fire_now(schedule), fire_now(schedule)]
    moment = utc_now()
    job = fleet.start(runs[1].work_item, moment)
    shown = api.get(f"/schedules/{key}").json
    assert (shown["last_run_id"], shown["run_count"]) == (job.run_id, 2)
    assert shown["last_run_at"] == int(moment.timestamp())
    listed = api.get(f"/schedules/{key}/runs").json["runs"]
    assert [run["id"] for run in listed] == [runs[1].pk, runs[0].pk]
    assert {run["task_id"] for run in listed} == {key}


def test_at_most_a_hundred_runs_of_a_schedule_are_listed_at_once(fleet: Fleet, api: Api):
    schedule = fleet.schedule(fleet.agent())
    assert api.get(f"/schedules/{schedule.pk}/runs", limit=101).status == 400
    assert api.get("/schedules/999/runs").message == "there is no such schedule"


def test_a_one_shot_that_succeeded_is_completed_after_one_run(fleet: Fleet, api: Api):
    fleet.agent()
    key = api.post("/schedules", SOON).json["id"]
    fleet.finish(fleet.start(fire_now(Schedule.objects.get()).work_item, utc_now()), now=utc_now())
    shown = api.get(f"/schedules/{key}").json
    assert (shown["status"], shown["run_count"], shown["next_fire_at"]) == ("completed", 1, None)


def test_a_skipped_firing_is_no_run_and_a_failed_run_gives_the_last_error(fleet: Fleet, api: Api):
    agent = fleet.agent()
    key = api.post("/schedules", MONDAYS).json["id"]
    schedule = Schedule.objects.get()
    run = fire_now(schedule)
    fire_now(schedule)
    shown = api.get(f"/schedules/{key}").json
    assert (shown["run_count"], shown["skipped_count"], shown["fire_count"]) == (1, 1, 2)
    assert shown["last_error"] is None
    job = fleet.start(run.work_item, utc_now())
    fleet.finish(job, "failed", utc_now(), error="exit code 3")
    assert api.get(f"/schedules/{key}").json["last_error"] == "exit code 3"
    assert agent.runs.count() == 1


def test_a_changed_schedule_is_the_first_of_the_list(fleet: Fleet, api: Api):
    fleet.agent()
    keys = [api.post("/schedules", SOON).json["id"] for _ in range(3)]

    def listed(**query: object) -> list[int]:
        found: list[int] = []
        while True:
            page = api.get("/schedules", limit=2, **query).json
            found += [each["id"] for each in page["schedules"]]
            if page["next_cursor"] is None:
                return found
            query["cursor"] = page["next_cursor"]

    assert listed() == keys[::-1]
    api.patch(f"/schedules/{keys[0]}", {"status": "paused"})
    assert listed() == [keys[0], keys[2], keys[1]]
    assert listed(order="created") == keys[::-1]


def test_without_a_name_the_agent_index_is_used(fleet: Fleet, api: Api):
    for name in ("other", "index"):
        fleet.agent(name)
    unnamed = {name: value for name, value in SOON.items() if name != "agent"}
    assert api.post("/schedules", unnamed).json["agent"] == "index"
    Agent.objects.filter(name="index").update(removed_at=NOON)
    assert api.post("/schedules", unnamed).json["agent"] == "other"


def test_a_schedule_of_a_disabled_agent_is_not_enabled(fleet: Fleet, api: Api):
    for name, scale in (("off", 0), ("on", 1)):
        fleet.schedule(fleet.agent(name, scale=scale), name=name)
    shown = {row["name"]: row["enabled"] for row in api.get("/schedules").json["schedules"]}
    assert shown == {"off": False, "on": True}


def test_the_list_is_filtered_and_starts_with_the_newest(fleet: Fleet, api: Api):
    for name in ("reporter", "other"):
        fleet.agent(name)
        api.post("/schedules", SOON | {"agent": name})
    api.post("/schedules", MONDAYS)

    def found(**query: str) -> list[tuple[str, str]]:
        page = api.get("/schedules", **query).json
        return [(s["agent"], s["kind"]) for s in page["schedules"]]

    assert found() == [("reporter", "recurring"), ("other", "once"), ("reporter", "once")]
    assert found(kind="once", agent="other") == [("other", "once")]
    assert found(status="paused") == []


def test_schedules_of_an_earlier_project_are_listed_on_request(fleet: Fleet, reader: Api):
    fleet.schedule(fleet.agent("present"))
    previous = fleet.agent("previous", directory="/another/agents/previous", removed_at=NOON)
    fleet.schedule(previous)

    def listed(query: str = "") -> set[str]:
        return {each["agent"] for each in reader.get(f"/schedules{query}").json["schedules"]}

    assert listed() == {"present"}
    assert listed("?all=true") == {"present", "previous"}
    assert listed("?agent=previous") == {"previous"}
