"""DELETE /v1/schedules/{id}: deletes the schedule with its runs after they have ended."""

from datetime import timedelta

from agents_app.models import Firing, Run, RunEvent, RunOutput, Schedule, WorkItem
from gateway_app.api.fields import utc_now
from tests.agents_app.admin.visitors import tell
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api
from tests.gateway_app.api.firing import fire_now

MONDAYS = {"schedule": "every monday at 09:00", "message": "summarise", "agent": "reporter"}


def test_a_schedule_is_deleted_with_its_runs_and_output(fleet: Fleet, api: Api):
    agent = fleet.agent()
    kept = fleet.enqueue(agent)
    fleet.finish(fleet.start(kept))
    key = api.post("/schedules", MONDAYS).json["id"]
    run = fire_now(Schedule.objects.get())
    job = fleet.start(run.work_item, utc_now())
    tell(job.run_id, b"hello")
    fleet.finish(job, now=utc_now())
    reply = api.delete(f"/schedules/{key}")
    assert (reply.status, reply.json) == (200, {"deleted": True})
    assert api.get(f"/schedules/{key}").status == 404
    assert api.get(f"/runs/{run.pk}").status == 404
    assert not Schedule.objects.exists() and not Firing.objects.exists()
    assert not RunOutput.objects.exists()
    assert list(WorkItem.objects.all()) == [kept]
    assert api.delete(f"/schedules/{key}").status == 404
    assert RunEvent.objects.get(name="schedule.deleted").detail.endswith(": token ci")


def test_queued_work_of_a_deleted_schedule_never_starts(fleet: Fleet, api: Api):
    agent = fleet.agent(scale=1)
    busy = fleet.start(fleet.enqueue(agent))
    schedule = fleet.schedule(agent, overlap="queue", next_fire_at=utc_now())
    fleet.fire(schedule, utc_now())
    assert WorkItem.objects.filter(state="queued").count() == 1
    assert api.delete(f"/schedules/{schedule.pk}").status == 200
    fleet.finish(busy)
    assert Run.objects.count() == 1


def test_a_running_schedule_is_deleted_after_its_run_has_ended(fleet: Fleet, api: Api):
    fleet.agent()
    key = api.post("/schedules", MONDAYS).json["id"]
    job = fleet.start(fire_now(Schedule.objects.get()).work_item, utc_now())
    reply = api.delete(f"/schedules/{key}")
    assert (reply.status, reply.message) == (409, "a run is still ending: ask again in a moment")
    assert Run.objects.get().stop_requested_at is not None
    assert api.get(f"/schedules/{key}").json["status"] == "canceled"
    fleet.finish(job, "stopped", utc_now() + timedelta(seconds=1))
    assert api.delete(f"/schedules/{key}").status == 200
    assert not Run.objects.exists()
