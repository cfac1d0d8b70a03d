"""The outcome of firings with its reason, and the overlap policy of their schedule."""

import logging
from typing import Any

import pytest

from agents_app.models import Run, Scheduler, Trigger, WorkItem
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.slots import find_free_slots, lock_agent
from agents_app.schedules import due, firing_log, firings
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, work_states

# --- skipped firings ------------------------------------------------------------------------


def _draining(fleet: Fleet) -> None:
    Scheduler.objects.create(pk=1, state="draining")


def _tenant(**columns: object):
    return lambda fleet: type(fleet.tenant).objects.update(**columns)


def _nothing(_: Fleet) -> None:
    pass


@pytest.mark.parametrize(
    ("columns", "change", "reason"),
    [
        ({"scale": 0}, _nothing, "disabled"),
        ({"removed_at": NOON}, _nothing, "disabled"),
        ({"paused_at": NOON}, _nothing, "paused"),
        ({}, _tenant(paused_at=NOON), "paused"),
        ({}, _tenant(disabled_at=NOON), "tenant_disabled"),
        ({}, _draining, "stopping"),
        # Several blocks: the reason with the widest scope is stored.
        ({"scale": 0, "paused_at": NOON}, _tenant(disabled_at=NOON), "tenant_disabled"),
        ({"scale": 0, "paused_at": NOON}, _nothing, "disabled"),
    ],
)
def test_a_skipped_firing_has_a_reason(fleet: Fleet, columns, change, reason):
    agent = fleet.agent(**columns)
    schedule = fleet.schedule(agent, overlap="queue")
    change(fleet)
    firing = fleet.fire(schedule)
    assert (firing.outcome, firing.reason) == ("skipped", reason)
    assert not agent.work_items.exists()


def test_the_work_item_of_a_firing_refers_to_its_schedule(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, prompt="tidy up")
    firing = fleet.fire(schedule)
    item = agent.work_items.get()
    assert (firing.outcome, firing.reason) == ("started", "")
    assert (item.firing, item.schedule, item.prompt) == (firing, schedule, "tidy up")
    assert (item.trigger, live_run(item).schedule) == ("schedule", schedule)


def test_a_firing_is_skipped_while_the_last_run_of_the_schedule_is_unfinished(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(scale=2))
    fleet.fire(schedule)
    firing = fleet.fire(schedule, at(60))
    assert (firing.outcome, firing.reason) == ("skipped", "already_running")


def test_a_firing_is_skipped_when_other_work_holds_all_slots(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent)
    firing = fleet.fire(fleet.schedule(agent))
    assert (firing.outcome, firing.reason) == ("skipped", "at_capacity")


def test_a_firing_is_skipped_when_the_project_is_full(fleet: Fleet):
    _tenant(scale=1)(fleet)
    fleet.enqueue(fleet.agent("busy"))
    firing = fleet.fire(fleet.schedule(fleet.agent("idle")))
    assert (firing.outcome, firing.reason) == ("skipped", "at_capacity")


def lines_of(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [r.msg for r in caplog.records if isinstance(r.msg, dict) and r.msg["event"] == event]


@pytest.mark.parametrize(("scale", "reason"), [(0, "disabled"), (1, "at_capacity")])
def test_a_skipped_firing_is_logged_with_its_reason(fleet: Fleet, caplog, scale, reason):
    agent = fleet.agent(scale=scale)
    if scale:
        fleet.enqueue(agent)
    schedule = fleet.schedule(agent)
    firing = fleet.fire(schedule)
    (line,) = lines_of(caplog, "firing.skipped")
    assert (line["schedule_id"], line["firing_id"]) == (schedule.pk, firing.pk)
    assert (line["agent"], line["reason"], line["level"]) == ("reporter", reason, "warning")


def test_a_firing_is_followed_from_its_claim_to_its_run_by_one_trace(durable_fleet: Fleet, caplog):
    caplog.set_level(logging.INFO, logger="drover")
    schedule = durable_fleet.schedule(durable_fleet.agent())
    due.claim_due_schedules(NOON)
    firings.decide_firings(NOON)
    firing = schedule.firings.get()
    job = durable_fleet.start(WorkItem.objects.get())
    durable_fleet.finish(job)
    ids = {
        "trace_id": Run.objects.get().trace_id,
        "agent": "reporter",
        "trigger": "schedule",
        "schedule_id": schedule.pk,
        "firing_id": firing.pk,
    }
    for event in ("firing.claimed", "firing.started", "run.started", "run.succeeded"):
        (line,) = lines_of(caplog, event)
        assert {name: line[name] for name in ids} == ids, event
        assert line["level"] == "info"
        assert line.get("run_id") == (job.run_id if event.startswith("run") else None)


def test_queued_work_of_a_firing_is_logged_as_queued(fleet: Fleet, caplog):
    caplog.set_level(logging.INFO, logger="drover")
    agent = fleet.agent()
    fleet.enqueue(agent)
    firing = fleet.fire(fleet.schedule(agent, overlap="queue"))
    (line,) = lines_of(caplog, "firing.queued")
    assert (line["firing_id"], line["trace_id"]) == (
        firing.pk,
        WorkItem.objects.latest("pk").trace_id,
    )


def test_very_many_firings_at_once_are_one_line(fleet: Fleet, caplog, monkeypatch):
    """Guard: a line costs as much as a statement, and thousands of schedules may be due."""
    monkeypatch.setattr(firing_log, "MOST_LINES", 2)
    caplog.set_level(logging.INFO, logger="drover")
    schedules = [fleet.schedule(fleet.agent(f"agent-{n}"), name=f"s{n}") for n in range(3)]
    due.claim_due_schedules(NOON)
    firings.decide_firings(NOON)
    for event in ("firing.claimed", "firing.started"):
        (line,) = lines_of(caplog, event)
        assert (line["count"], line["schedule_ids"]) == (3, [each.pk for each in schedules])


@pytest.mark.parametrize(("state", "reason"), [("paused", "paused"), ("canceled", "disabled")])
def test_a_schedule_paused_or_canceled_before_the_decision_starts_no_run(
    fleet: Fleet, state, reason
):
    """A beat died between the firing and its outcome, and a user changed the schedule."""
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    firing = fleet.firing(schedule)
    type(schedule).objects.filter(pk=schedule.pk).update(state=state)
    firings.decide_firings(at(10))
    firing.refresh_from_db()
    assert (firing.outcome, firing.reason) == ("skipped", reason)
    assert not agent.work_items.exists()


def test_firings_are_decided_in_the_order_of_their_due_times(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="queue")
    for second in (30, 0, 15):
        fleet.firing(schedule, at(second))
    firings.decide_firings(at(60))
    items = agent.work_items.order_by("pk").select_related("firing")
    assert [item.firing.due_at for item in items] == [at(0), at(15), at(30)]


def test_undecided_firings_of_several_batches_are_all_decided(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(firings, "FIRINGS_IN_ONE_BATCH", 20)
    agents = [fleet.agent(f"agent-{number}") for number in range(3)]
    schedules = [fleet.schedule(agent, overlap="queue") for agent in agents]
    for schedule in schedules:
        for second in range(25):
            fleet.firing(schedule, at(second))
    assert firings.decide_firings(at(60)) == 75
    assert firings.decide_firings(at(60)) == 0
    assert WorkItem.objects.count() == 75


# --- overlap --------------------------------------------------------------------------------


def _fire_while_running(fleet: Fleet, overlap: str, times: int) -> list[str]:
    """The outcomes of firings that are due while a run is unfinished."""
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap=overlap)
    fleet.fire(schedule)
    fleet.start(agent.work_items.get())
    firings = [fleet.fire(schedule, at(minutes=minute)) for minute in range(1, times + 1)]
    return [firing.outcome for firing in firings]


def test_overlap_skip_never_queues(fleet: Fleet):
    assert _fire_while_running(fleet, "skip", 2) == ["skipped", "skipped"]


def test_overlap_queue_one_queues_at_most_one_firing(fleet: Fleet):
    assert _fire_while_running(fleet, "queue_one", 3) == ["queued", "skipped", "skipped"]


def test_overlap_queue_queues_all_firings(fleet: Fleet):
    assert _fire_while_running(fleet, "queue", 3) == ["queued", "queued", "queued"]


def test_overlap_cancel_other_stops_the_running_run_and_waits_for_its_slot(fleet: Fleet):
    assert _fire_while_running(fleet, "cancel_other", 1) == ["queued"]
    run = Run.objects.get(slot__isnull=False)
    assert run.stop_requested_at == at(60)
    assert run.error == "replaced by a newer firing"


def test_overlap_cancel_other_queues_only_the_newest_firing(fleet: Fleet):
    _fire_while_running(fleet, "cancel_other", 3)
    waiting = WorkItem.objects.filter(state="queued")
    assert [item.firing.due_at for item in waiting if item.firing] == [at(minutes=3)]


def test_overlap_cancel_other_replaces_a_run_that_no_worker_has_started(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="cancel_other")
    fleet.fire(schedule)
    assert fleet.fire(schedule, at(60)).outcome == "started"
    assert run_states(agent) == ["stopped", "pending"]


def test_overlap_cancel_other_does_not_stop_other_work_of_the_agent(fleet: Fleet):
    agent = fleet.agent(scale=2)
    schedule = fleet.schedule(agent, overlap="cancel_other")
    asked = fleet.enqueue(agent)
    fleet.fire(schedule)
    fleet.fire(schedule, at(60))
    assert live_run(asked).stop_requested_at is None
    assert run_states(agent) == ["pending", "stopped", "pending"]


@pytest.mark.parametrize("overlap", ["queue", "queue_one", "cancel_other"])
def test_other_work_of_the_agent_queues_a_firing_unless_overlap_is_skip(fleet: Fleet, overlap):
    agent = fleet.agent()
    fleet.enqueue(agent)
    assert fleet.fire(fleet.schedule(agent, overlap=overlap)).outcome == "queued"


# --- stopping -------------------------------------------------------------------------------


def test_a_pending_run_is_stopped_immediately(fleet: Fleet):
    agent = fleet.agent()
    item = fleet.enqueue(agent)
    assert dispatch.request_stop([live_run(item)], at(5), "stopped by ann") == 1
    run = agent.runs.get()
    assert (run.state, run.error, run.finished_at) == ("stopped", "stopped by ann", at(5))
    assert (run.slot, work_states(agent)) == (None, ["failed"])


def test_a_running_run_keeps_its_slot_until_its_worker_ends_it(fleet: Fleet):
    agent = fleet.agent()
    job = fleet.start(fleet.enqueue(agent))
    assert dispatch.request_stop(agent.runs.all(), at(5), "stopped by ann") == 1
    run = agent.runs.get()
    assert (run.state, run.slot, run.stop_requested_at) == ("running", 0, at(5))
    fleet.finish(job, "stopped", at(6), error="stopped by ann")
    assert run_states(agent) == ["stopped"]


def test_a_repeated_stop_request_counts_once(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    dispatch.request_stop(agent.runs.all(), at(5), "stopped by ann")
    assert dispatch.request_stop(agent.runs.all(), at(6), "stopped by bob") == 0
    assert agent.runs.get().error == "stopped by ann"


def test_a_finished_run_cannot_be_stopped(fleet: Fleet):
    agent = fleet.agent()
    fleet.finish(fleet.start(fleet.enqueue(agent)))
    assert dispatch.request_stop(agent.runs.all(), at(5), "too late") == 0
    run = agent.runs.get()
    assert (run.state, run.error, run.stop_requested_at) == ("succeeded", "", None)


def test_the_slot_of_a_stopped_run_goes_to_queued_work(fleet: Fleet):
    agent = fleet.agent()
    first, _ = fleet.enqueue(agent), fleet.enqueue(agent)
    dispatch.request_stop([live_run(first)], at(5), "stopped by ann")
    assert run_states(agent) == ["stopped", "pending"]


# --- reruns ---------------------------------------------------------------------------------


def test_a_requested_rerun_is_new_work_with_the_same_input(fleet: Fleet):
    agent = fleet.agent()
    item = fleet.enqueue(agent, trigger=Trigger.WEBHOOK, prompt="p", context="c")
    job = fleet.start(item)
    fleet.finish(job, "failed")
    again = dispatch.enqueue_rerun(Run.objects.get(pk=job.run_id), "ann", at(9))
    assert again.pk != item.pk
    assert (again.prompt, again.context, again.trigger) == ("p", "c", "manual")
    assert again.requested_by == f"ann, rerun of run {job.run_id}"


def test_a_requested_rerun_does_not_belong_to_the_schedule(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    fleet.finish(job)
    again = dispatch.enqueue_rerun(Run.objects.get(pk=job.run_id), "ann", at(9))
    assert (again.schedule, again.firing) == (None, None)
    assert fleet.fire(schedule, at(60)).reason == "at_capacity"


# --- admitting ------------------------------------------------------------------------------


def test_a_raised_scale_admits_as_much_work_as_there_are_slots(fleet: Fleet):
    agent = fleet.agent()
    for _ in range(5):
        fleet.enqueue(agent)
    type(agent).objects.update(scale=3)
    assert dispatch.admit_waiting(agent.pk, at(1)) == 2
    assert work_states(agent) == ["admitted"] * 3 + ["queued"] * 2


def test_work_is_not_admitted_before_it_is_available(fleet: Fleet):
    agent = fleet.agent(scale=2, retries=1)
    fleet.finish(fleet.start(fleet.enqueue(agent)), "failed", NOON)
    assert dispatch.admit_waiting(agent.pk, at(9)) == 0
    assert dispatch.admit_waiting(agent.pk, at(10)) == 1


def test_work_that_is_not_available_yet_does_not_block_younger_work(fleet: Fleet):
    agent = fleet.agent(retries=1)
    fleet.finish(fleet.start(fleet.enqueue(agent)), "failed", NOON)
    assert fleet.enqueue(agent, at(1)).state == "admitted"


def test_lifecycle_admits_nothing_without_queued_work(fleet: Fleet):
    agent = fleet.agent()
    gate = lock_agent(agent.pk)
    assert gate is not None
    place = find_free_slots(agent.pk, gate)
    assert place is not None
    assert lifecycle.admit_oldest_work(agent.pk, gate, place, NOON) is None
