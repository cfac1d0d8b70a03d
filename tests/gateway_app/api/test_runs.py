"""/v1/runs: list, show, stop, rerun."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agents_app.events.tail import entries_between, newest_entry_id
from agents_app.models import Run, WorkItem
from gateway_app.streams.journal_filter import JournalFilter
from tests.agents_app.calling import program
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.calling import Api


def ids(page: Any) -> list[int]:
    return [run["id"] for run in page["runs"]]


def test_a_run_shows_its_requester_its_times_and_its_end(fleet: Fleet, reader: Api):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent, requested_by="ann"))
    ended = at(90.25)
    fleet.finish(job, "failed", ended, error="exit code 1", exit_code=1)
    shown = reader.get(f"/runs/{job.run_id}").json
    assert (shown["agent"], shown["requested_by"], shown["trigger"]) == (
        "reporter",
        "ann",
        "manual",
    )
    assert (shown["state"], shown["status"]) == ("failed", "failed")
    assert (shown["exit_code"], shown["error"]) == (1, "exit code 1")
    assert shown["started_at"] == NOON.timestamp()
    assert shown["finished_at"] == shown["completed_at"] == int(ended.timestamp())
    assert shown["duration_seconds"] == 90.25
    assert (shown["attempt"], shown["worker"]) == (1, "worker-0")
    assert reader.get("/runs").json["runs"] == [shown]


def test_since_finds_runs_that_started_then_or_later(fleet: Fleet, reader: Api):
    agent = fleet.agent(scale=9)
    started = [fleet.start(fleet.enqueue(agent, at(n)), at(n)).run_id for n in range(4)]
    pending = fleet.enqueue(agent, at(9)).runs.get().pk
    since = int(at(2).timestamp())
    assert ids(reader.get("/runs", since=since).json) == [started[3], started[2]]
    assert ids(reader.get("/runs").json) == [pending, *reversed(started)]


def test_at_most_two_hundred_runs_are_listed_at_once(fleet: Fleet, reader: Api):
    agent = fleet.agent(scale=300)
    item = fleet.enqueue(agent)
    template = item.runs.get()
    Run.objects.filter(pk=template.pk).update(
        state="succeeded", slot=None, started_at=NOON, finished_at=NOON
    )
    template.refresh_from_db()
    template.pk = None
    Run.objects.bulk_create([_copy(template) for _ in range(230)])
    page = reader.get("/runs", since=0).json
    assert len(page["runs"]) == 200
    rest = reader.get("/runs", since=0, cursor=page["next_cursor"]).json
    assert (len(rest["runs"]), rest["next_cursor"]) == (31, None)


def _copy(run: Run) -> Run:
    values = {f.attname: getattr(run, f.attname) for f in Run._meta.concrete_fields}
    return Run(**{**values, "id": None})


def test_runs_are_found_by_state_agent_trigger_and_schedule(fleet: Fleet, reader: Api):
    one, two = fleet.agent("one"), fleet.agent("two")
    schedule = fleet.schedule(one)
    fleet.fire(schedule)
    scheduled = Run.objects.get()
    manual = fleet.start(fleet.enqueue(two)).run_id
    assert ids(reader.get("/runs", state="running").json) == [manual]
    assert ids(reader.get("/runs", agent="one").json) == [scheduled.pk]
    assert ids(reader.get("/runs", trigger="schedule").json) == [scheduled.pk]
    assert ids(reader.get("/runs", schedule_id=schedule.pk).json) == [scheduled.pk]
    assert reader.get("/runs", agent="missing").message == "there is no such agent"
    assert reader.get("/runs", schedule_id=999).message == "there is no such schedule"


def test_a_run_is_stopped_once(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=2)
    running, pending = fleet.start(fleet.enqueue(agent)).run_id, fleet.enqueue(agent).runs.get().pk
    shown = api.post(f"/runs/{running}/stop").json
    assert (shown["state"], shown["error"]) == ("running", "stopped by token ci")
    assert shown["stop_requested_at"] is not None
    assert api.post(f"/runs/{running}/stop").status == 200
    assert api.post(f"/runs/{pending}/stop").json["state"] == "stopped"
    reply = api.post(f"/runs/{pending}/stop")
    assert (reply.status, reply.message) == (409, f"run {pending} has ended already: stopped")


def test_a_rerun_has_the_same_input(fleet: Fleet, api: Api):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent, prompt="the same"))
    fleet.finish(job, "failed")
    reply = api.post(f"/runs/{job.run_id}/rerun")
    assert reply.status == 202
    item = WorkItem.objects.get(pk=reply.json["work_item_id"])
    assert item.prompt == "the same"
    assert item.requested_by == f"token ci, rerun of run {job.run_id}"


@pytest.mark.parametrize("cost", ["0", "1.5", "0.000001", "999999.999999"])
def test_the_cost_of_a_run_is_a_number(fleet: Fleet, reader: Api, cost: str):
    run = fleet.enqueue(fleet.agent()).runs.get()
    Run.objects.update(cost_usd=cost, tokens_in=5)
    shown = reader.get(f"/runs/{run.pk}").json
    assert (shown["cost_usd"], shown["tokens_in"]) == (float(cost), 5)


def test_the_summary_of_a_long_result_is_cut_in_the_api_and_in_the_stream(
    fleet: Fleet, reader: Api
):
    """As the program returned it by its signal; the whole text stays in the row."""
    one = program(fleet, fleet.agent())
    one.says("return", text="é" * 5000)
    one.ends(now=at(3))
    cut = "é" * 2048 + "\n…[truncated]"
    assert reader.get(f"/runs/{one.job.run_id}").json["result_summary"] == cut
    (listed,) = reader.get("/runs").json["runs"]
    assert listed["result_summary"] == cut
    *_, ended = entries_between(fleet.tenant.pk, 0, newest_entry_id())
    _, data, *_ = JournalFilter(fleet.tenant.pk).events([ended]).decode().splitlines()
    sent = json.loads(data.removeprefix("data: "))
    assert (sent["kind"], sent["result_summary"]) == ("run.completed", cut)
    assert one.run.return_value == "é" * 5000


def test_a_run_that_has_not_begun_has_no_times(fleet: Fleet, reader: Api):
    now = NOON + timedelta(hours=1)
    run = fleet.enqueue(fleet.agent(), now).runs.get()
    shown = reader.get(f"/runs/{run.pk}").json
    assert shown["created_at"] == now.timestamp()
    assert (shown["started_at"], shown["duration_seconds"]) == (None, None)
