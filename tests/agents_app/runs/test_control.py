"""Commands of users for a fleet: the rows they change and the events they record."""

import pytest

from agents_app.models import Agent, Run, RunEvent, Schedule, Scheduler, Tenant, WorkItem
from agents_app.runs import control, dispatch, read_scheduler
from agents_app.schedules import due, edit
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, work_states


def event_details(name: str) -> list[str]:
    return list(RunEvent.objects.filter(name=name).values_list("detail", flat=True))


# --- pause and resume -----------------------------------------------------------------------


def test_a_paused_agent_queues_work_that_starts_when_the_agent_is_resumed(fleet: Fleet):
    agent = fleet.agent(scale=2)
    assert control.pause_agent(agent, "ann", NOON, "too loud")
    for _ in range(3):
        fleet.enqueue(agent)
    assert work_states(agent) == ["queued"] * 3
    assert control.resume_agent(agent, "bob", at(5))
    assert work_states(agent) == ["admitted", "admitted", "queued"]
    assert (event_details("agent.paused"), event_details("agent.resumed")) == (
        ["ann: too loud"],
        ["bob"],
    )


def test_a_paused_tenant_queues_work_that_starts_when_the_tenant_is_resumed(fleet: Fleet):
    agents = [fleet.agent("a"), fleet.agent("b")]
    assert control.pause_tenant(fleet.tenant, "ann", NOON)
    for agent in agents:
        fleet.enqueue(agent)
    assert not Run.objects.exists()
    assert control.resume_tenant(fleet.tenant, "bob", at(5))
    assert [run_states(agent) for agent in agents] == [["pending"], ["pending"]]
    assert (event_details("scheduler.paused"), event_details("scheduler.resumed")) == (
        ["ann"],
        ["bob"],
    )


def test_a_paused_agent_stays_paused_when_its_tenant_is_resumed(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON)
    control.pause_tenant(fleet.tenant, "ann", NOON)
    fleet.enqueue(agent)
    control.resume_tenant(fleet.tenant, "ann", at(5))
    assert work_states(agent) == ["queued"]


def test_pausing_twice_is_one_pause_with_the_first_note(fleet: Fleet):
    agent = fleet.agent()
    assert control.pause_agent(agent, "ann", NOON, "first")
    assert not control.pause_agent(agent, "bob", at(5), "second")
    agent.refresh_from_db()
    assert (agent.paused_at, agent.pause_note) == (NOON, "first")
    assert event_details("agent.paused") == ["ann: first"]


def test_a_pause_does_not_stop_running_runs(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    control.pause_agent(agent, "ann", NOON)
    fleet.finish(job)
    assert run_states(agent) == ["succeeded"]


def test_a_paused_schedule_does_not_fire_and_a_resumed_one_waits_for_its_next_time(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "0 * * * *")
    assert edit.pause(schedule, "ann", NOON, "holiday")
    assert due.claim_due_schedules(at(hours=2)) == 0
    assert edit.resume(schedule, "ann", at(hours=2, minutes=30))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.next_fire_at) == ("active", at(hours=3))
    assert due.claim_due_schedules(at(hours=2, minutes=30)) == 0
    assert event_details("schedule.paused") == ["main: ann: holiday"]


def test_a_resumed_interval_waits_for_one_interval(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "15m", interval_seconds=900)
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(hours=2))
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(hours=2, minutes=15)


@pytest.mark.parametrize("state", ["active", "completed", "canceled"])
def test_only_a_paused_schedule_is_resumed(fleet: Fleet, state):
    schedule = fleet.schedule(fleet.agent(), state=state)
    assert not edit.resume(schedule, "ann", at(5))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.next_fire_at) == (state, NOON)
    assert event_details("schedule.resumed") == []


# --- scale ----------------------------------------------------------------------------------


def test_the_event_of_a_new_scale_names_the_user(fleet: Fleet):
    agent = fleet.agent()
    control.scale_agent(agent, 4, "ann", NOON)
    assert event_details("agent.scaled") == ["ann: 4"]
    assert Agent.objects.get().scale == 4


# --- stop -----------------------------------------------------------------------------------


def test_stopping_an_agent_ends_pending_runs_and_requests_the_end_of_running_runs(fleet: Fleet):
    agent, other = fleet.agent(scale=2), fleet.agent("other")
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    fleet.enqueue(other)
    assert control.stop_agent(agent, "ann", at(5)) == 2
    running, pending = agent.runs.order_by("id")
    assert (running.state, running.stop_requested_at) == ("running", at(5))
    assert (pending.state, pending.error) == ("stopped", "stopped by ann")
    assert run_states(other) == ["pending"]
    assert event_details("agent.stopped") == ["ann: 2 runs being stopped"]
    assert (event_details("run.stop_requested"), event_details("run.stopped")) == (
        ["stopped by ann"],
    ) * 2


def test_stopping_a_run_returns_whether_the_stop_was_new(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    run = Run.objects.get(pk=job.run_id)
    assert control.stop_run(run, "ann", at(5))
    fleet.finish(job, "stopped")
    assert not control.stop_run(run, "ann", at(6))
    assert event_details("run.stop_requested") == ["stopped by ann"]
    assert control.stop_agent(agent, "ann", at(7)) == 0
    assert event_details("agent.stopped") == []


# --- shutdown -------------------------------------------------------------------------------


def test_a_shutdown_clears_the_queues_and_lets_runs_finish(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent), fleet.enqueue(agent)
    assert control.begin_drain("ann", at(5), keep_queue=False) == 2
    assert work_states(agent) == ["admitted", "cleared", "cleared"]
    assert event_details("scheduler.stopping") == ["ann: 2 cleared"]
    assert fleet.finish(job, hand_over=True) is None
    assert run_states(agent) == ["succeeded"]


def test_a_second_shutdown_during_a_drain_clears_nothing_and_records_no_event(fleet: Fleet):
    agent = fleet.agent()
    assert control.begin_drain("ann", at(5), keep_queue=False) == 0
    fleet.enqueue(agent)
    assert control.begin_drain("bob", at(6), keep_queue=False) == 0
    assert work_states(agent) == ["queued"]
    assert event_details("scheduler.stopping") == ["ann: 0 cleared"]


def test_a_shutdown_can_keep_the_queue(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent), fleet.enqueue(agent)
    assert control.begin_drain("ann", at(5), keep_queue=True) == 0
    assert work_states(agent) == ["admitted", "queued"]
    assert event_details("scheduler.stopping") == ["ann: queues kept"]


def test_only_the_default_tenant_sees_who_stopped_the_scheduler(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other"))
    other.enqueue(other.agent())
    control.begin_drain("ann", at(5), keep_queue=False)
    theirs = RunEvent.objects.filter(tenant=other.tenant).values_list("detail", flat=True)
    assert not [detail for detail in theirs if "ann" in detail]
    assert WorkItem.objects.get(state="cleared").reason == "the scheduler was stopped"


def test_work_requested_during_a_shutdown_is_queued_and_not_started(fleet: Fleet):
    agent = fleet.agent()
    control.begin_drain("ann", NOON, keep_queue=True)
    assert fleet.enqueue(agent).state == "queued"


def test_cleared_work_is_restored_in_its_old_order(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON)
    items = [fleet.enqueue(agent) for _ in range(3)]
    control.begin_drain("ann", at(1), keep_queue=False)
    control.resume_agent(agent, "ann", at(2))
    control.set_scheduler_state(Scheduler.State.RUNNING)
    assert control.restore_cleared(fleet.tenant, "ann", at(9)) == 3
    assert live_run(items[0]).state == "pending"
    assert work_states(agent) == ["admitted", "queued", "queued"]


def test_a_run_that_no_worker_has_started_is_cleared_with_the_queue(fleet: Fleet):
    agent = fleet.agent()
    item = fleet.enqueue(agent)
    assert control.begin_drain("ann", at(5), keep_queue=False) == 1
    assert (run_states(agent), work_states(agent)) == (["stopped"], ["cleared"])
    control.start_scheduler(at(8))
    assert control.restore_cleared(fleet.tenant, "ann", at(9)) == 1
    assert live_run(item).attempt == 2


def test_only_the_tenants_own_work_is_restored(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent), fleet.enqueue(agent)
    control.begin_drain("ann", NOON, keep_queue=False)
    assert control.restore_cleared(Tenant.objects.create(name="other"), "ann", at(9)) == 0
    assert WorkItem.objects.filter(state="cleared").count() == 2


def test_a_beat_starts_a_stopped_scheduler_but_not_a_draining_one(fleet: Fleet):
    control.start_scheduler_if_stopped(NOON)
    assert Scheduler.objects.get().state == "running"
    fleet.worker(lease_until=at(60))
    control.begin_drain("ann", at(1), keep_queue=True)
    control.start_scheduler_if_stopped(at(2))
    assert Scheduler.objects.get().state == "draining"


def test_a_drain_whose_processes_were_killed_is_shown_as_stopped_and_a_beat_starts_again(
    fleet: Fleet,
):
    fleet.worker(lease_until=at(60))
    control.begin_drain("ann", at(1), keep_queue=True)
    Scheduler.objects.update(last_check_at=at(20))
    assert [read_scheduler(at(second)).state for second in (5, 45, 59)] == ["draining"] * 3
    assert read_scheduler(at(61)).state == "stopped"
    assert Scheduler.objects.get().state == "draining"
    control.start_scheduler_if_stopped(at(61))
    assert Scheduler.objects.get().state == "running"


def test_the_event_of_a_cleared_queue_names_the_user_and_the_queue_can_be_restored(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    waiting = fleet.enqueue(agent)
    assert control.clear_queue(agent.work_items.all(), "ann", at(1)) == 1
    waiting.refresh_from_db()
    assert (waiting.state, waiting.reason) == ("cleared", "cleared by ann")
    assert control.restore_cleared(fleet.tenant, "bob", at(2)) == 1
    assert work_states(agent) == ["admitted", "queued"]
    assert (event_details("queue.cleared"), event_details("queue.restored")) == (
        ["ann: 1 of this queue"],
        ["bob: 1"],
    )
    assert RunEvent.objects.get(name="queue.cleared").agent == agent


def test_clearing_several_queues_records_one_event_for_each_tenant(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other"))
    for agent in (fleet.agent("a", paused_at=NOON), fleet.agent("b", paused_at=NOON)):
        fleet.enqueue(agent)
    other.enqueue(other.agent(paused_at=NOON))
    assert control.clear_queue(WorkItem.objects.all(), "ann", at(1)) == 3
    assert sorted(event_details("queue.cleared")) == [
        "ann: 1 of this queue",
        "ann: 2 of all queues",
    ]


def test_a_restored_work_item_is_queued_and_its_event_names_the_user(fleet: Fleet):
    agent = fleet.agent(paused_at=NOON)
    item = fleet.enqueue(agent)
    assert not control.restore_work(item, "ann", at(1))
    control.drop_work(item, "ann", at(1))
    item.refresh_from_db()
    assert control.restore_work(item, "bob", at(2))
    assert work_states(agent) == ["queued"]
    assert event_details("work.restored") == [f"work item {item.pk}: restored by bob"]


# --- run ------------------------------------------------------------------------------------


def test_a_run_requested_by_a_user_is_recorded_once_for_each_key(fleet: Fleet):
    agent = fleet.agent()
    items = {
        control.run_agent(agent, "ann", at(number), prompt="x", idempotency_key="k").pk
        for number in range(2)
    }
    assert event_details("work.requested") == [f"ann: work item {pk}" for pk in items]
    run = agent.runs.get()
    again = dispatch.enqueue_rerun(run, "bob", at(5))
    assert event_details("run.rerun") == [f"bob: work item {again.pk}"]
    assert (again.prompt, again.requested_by) == ("x", f"bob, rerun of run {run.pk}")
    assert again.rerun_of_id == run.pk


def test_the_event_of_a_dropped_work_item_names_the_user(fleet: Fleet):
    agent = fleet.agent()
    _, waiting = fleet.enqueue(agent), fleet.enqueue(agent)
    assert control.drop_work(waiting, "ann", at(1))
    assert not control.drop_work(waiting, "bob", at(2))
    assert event_details("work.dropped") == [f"work item {waiting.pk}: dropped by ann"]


def test_a_schedule_of_another_state_is_not_paused(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), state="completed")
    assert not edit.pause(schedule, "ann", NOON)
    assert Schedule.objects.get().state == "completed"
