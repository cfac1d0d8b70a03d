"""One-shots: the events that end them, and waiting for a slot."""

from typing import Any

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.maintenance.invariants import violations
from agents_app.models import Agent, Run, Schedule, Tenant, WorkItem
from agents_app.runs import control, dispatch, lifecycle
from agents_app.schedules import due, edit, firings
from tests.agents_app.fleet import NOON, Fleet, at, live_run, work_states
from tests.agents_app.timely import (
    create,
    last_work,
    outcomes,
    reread,
    run,
    runs_of,
    start,
    states,
    tick,
)

SOON = "in 10 minutes"
DUE = at(minutes=10)
AFTER = at(minutes=20)


def disable(fleet: Fleet) -> None:
    Tenant.objects.filter(pk=fleet.tenant.pk).update(disabled_at=NOON)


def lose(schedule: Schedule, now: Any) -> None:
    doomed = Run.objects.select_related("agent").get(schedule=schedule, slot__isnull=False)
    assert in_transaction(lambda: lifecycle.lose_run(doomed, now, "lost: its worker died"))


# --- the end of a one-shot ------------------------------------------------------------------


def test_a_one_shot_whose_run_succeeds_is_completed(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    assert (schedule.next_fire_at, schedule.one_shot) == (DUE, True)
    tick(at(minutes=9))
    assert outcomes(schedule) == []
    tick(DUE)
    assert states(schedule) == ("active", "")
    fleet.finish(start(fleet, schedule), now=at(minutes=11))
    seen = reread(schedule)
    assert (seen.state, seen.pause_note, seen.next_fire_at) == ("completed", "", None)
    assert (seen.fire_count, seen.last_fire_at) == (1, DUE)
    assert seen.last_completed_at == at(minutes=11)
    tick(at(days=400))
    assert outcomes(schedule) == [(DUE, "started", "")]


@pytest.mark.parametrize(
    ("state", "error", "note"),
    [
        ("failed", "exit code 3", "exit code 3"),
        ("timed_out", "timed out after 900 s", "timed out after 900 s"),
        ("stopped", "stopped by ann", "stopped by ann"),
        ("failed", "", "failed"),
    ],
)
def test_a_one_shot_whose_run_fails_is_failed_with_the_error_of_its_run(
    fleet: Fleet, state, error, note
):
    schedule = create(fleet.agent(), SOON)
    run(fleet, schedule, state, DUE, error)
    assert states(schedule) == ("failed", note)
    assert reread(schedule).next_fire_at is None


def test_a_one_shot_has_not_failed_while_it_is_retried(fleet: Fleet):
    agent = fleet.agent(retries=1)
    schedule = create(agent, SOON)
    run(fleet, schedule, "failed", DUE, "exit code 3")
    assert states(schedule) == ("active", "")
    dispatch.admit_waiting(agent.pk, AFTER)
    fleet.finish(start(fleet, schedule, AFTER), now=AFTER)
    assert states(schedule) == ("completed", "")
    assert runs_of(schedule) == ["failed", "succeeded"]


def test_a_one_shot_whose_last_attempt_fails_has_failed(fleet: Fleet):
    agent = fleet.agent(retries=1)
    schedule = create(agent, SOON)
    run(fleet, schedule, "failed", DUE, "exit code 3")
    dispatch.admit_waiting(agent.pk, AFTER)
    fleet.finish(start(fleet, schedule, AFTER), "failed", AFTER, error="exit code 4")
    assert states(schedule) == ("failed", "exit code 4")


def test_a_one_shot_with_reruns_ends_with_the_last_run(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    fleet.finish(start(fleet, schedule), now=DUE, wants_rerun=True)
    assert states(schedule) == ("active", "")
    fleet.finish(start(fleet, schedule, AFTER), "failed", AFTER, error="exit code 1")
    assert states(schedule) == ("failed", "exit code 1")


def test_a_one_shot_whose_pending_run_is_stopped_has_failed(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    control.stop_run(live_run(last_work(schedule)), "ann", DUE)
    assert states(schedule) == ("failed", "stopped by ann")


def test_a_lost_one_shot_has_failed(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    start(fleet, schedule)
    lose(schedule, AFTER)
    assert states(schedule) == ("failed", "lost: its worker died")


def test_a_lost_one_shot_is_retried_if_on_lost_is_retry(fleet: Fleet):
    agent = fleet.agent(on_lost="retry")
    schedule = create(agent, SOON)
    tick(DUE)
    start(fleet, schedule)
    lose(schedule, AFTER)
    assert states(schedule) == ("active", "")
    dispatch.admit_waiting(agent.pk, AFTER)
    fleet.finish(start(fleet, schedule, AFTER), now=AFTER)
    assert states(schedule) == ("completed", "")


def test_a_one_shot_whose_work_is_dropped_has_failed(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    schedule = create(agent, SOON)
    tick(DUE)
    assert control.drop_work(last_work(schedule), "bob", AFTER)
    assert states(schedule) == ("failed", "dropped: dropped by bob")


def test_a_one_shot_dropped_from_a_full_queue_has_failed(fleet: Fleet):
    agent = fleet.agent(work_queue_size=1)
    fleet.start(fleet.enqueue(agent))
    schedule = create(agent, SOON)
    tick(DUE)
    fleet.enqueue(agent, AFTER)
    assert states(schedule) == ("failed", "dropped: overflow: more than 1 work items were queued")


def test_restored_work_decides_how_its_one_shot_ends(fleet: Fleet):
    agent = fleet.agent()
    busy = fleet.start(fleet.enqueue(agent))
    schedule = create(agent, SOON)
    tick(DUE)
    control.drop_work(last_work(schedule), "bob", AFTER)
    lifecycle.restore_work(last_work(schedule).pk, "dropped", AFTER)
    fleet.finish(busy, now=AFTER)
    fleet.finish(start(fleet, schedule, AFTER), now=AFTER)
    assert states(schedule) == ("completed", "")


def test_a_one_shot_whose_work_was_cleared_continues_when_the_work_is_restored(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(DUE)
    control.begin_drain("ann", AFTER, keep_queue=False)
    assert states(schedule) == ("active", "")
    assert violations(at(hours=1)) == []
    control.start_scheduler(at(hours=2))
    control.restore_cleared(fleet.tenant, "ann", at(hours=2))
    fleet.finish(start(fleet, schedule, at(hours=2)), now=at(hours=2))
    assert states(schedule) == ("completed", "")


# --- one-shots without a run ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "note"),
    [({"paused_at": NOON}, "skipped: paused"), ({"scale": 0}, "skipped: disabled")],
)
def test_a_one_shot_that_is_blocked_has_failed_with_the_reason(fleet: Fleet, columns, note):
    agent = fleet.agent()
    schedule = create(agent, SOON)
    Agent.objects.update(**columns)
    tick(DUE)
    assert states(schedule) == ("failed", note)
    assert reread(schedule).skipped_count == 1
    assert not agent.work_items.exists()


def test_a_one_shot_with_overlap_skip_has_failed_if_no_slot_is_free(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent)
    schedule = create(agent, SOON, overlap="skip")
    tick(DUE)
    assert states(schedule) == ("failed", "skipped: at_capacity")


def test_a_one_shot_missed_by_more_than_its_window_has_failed(fleet: Fleet):
    schedule = create(fleet.agent(), SOON, catch_up_window_seconds=600)
    tick(at(minutes=20, seconds=1))
    assert states(schedule) == ("failed", "skipped: missed")
    assert outcomes(schedule) == [(DUE, "skipped", "missed")]
    assert (reread(schedule).missed_count, reread(schedule).fire_count) == (1, 0)


def test_a_one_shot_within_its_window_fires_late(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    tick(at(minutes=40))
    assert outcomes(schedule) == [(DUE, "started", "")]
    assert reread(schedule).late_count == 1


def test_a_one_shot_whose_work_item_cannot_be_created_has_failed(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    schedule = create(agent, SOON)
    due.claim_due_schedules(DUE)
    other = durable_fleet.enqueue(agent)
    WorkItem.objects.filter(pk=other.pk).update(firing=schedule.firings.get())
    firings.decide_firings(DUE)
    assert outcomes(schedule) == [(DUE, "failed", "")]
    assert states(schedule)[0] == "failed"
    assert states(schedule)[1].startswith("the work item could not be created: ")


# --- disabled tenants and missing agents ----------------------------------------------------


def test_a_one_shot_of_a_disabled_tenant_is_paused(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    disable(fleet)
    tick(DUE)
    assert states(schedule) == ("paused", "the tenant is disabled")
    assert outcomes(schedule) == []


def test_a_tenant_disabled_after_the_firing_was_recorded_pauses_the_one_shot(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    due.claim_due_schedules(DUE)
    disable(fleet)
    firings.decide_firings(DUE)
    assert states(schedule) == ("paused", "the tenant is disabled")
    assert outcomes(schedule) == [(DUE, "skipped", "tenant_disabled")]


def test_a_one_shot_of_a_missing_agent_is_paused(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    Agent.objects.update(removed_at=NOON)
    tick(DUE)
    assert states(schedule) == ("paused", "the agent's directory is missing")


def test_a_one_shot_that_drover_paused_fires_when_it_is_resumed(fleet: Fleet):
    schedule = create(fleet.agent(), SOON)
    due.claim_due_schedules(DUE)
    disable(fleet)
    firings.decide_firings(DUE)
    Tenant.objects.update(disabled_at=None)
    edit.resume(schedule, "ann", AFTER)
    tick(AFTER)
    assert outcomes(schedule) == [(DUE, "skipped", "tenant_disabled"), (AFTER, "started", "")]


# --- waiting --------------------------------------------------------------------------------


def test_a_one_shot_waits_for_a_slot_by_default(fleet: Fleet):
    agent = fleet.agent()
    busy = fleet.start(fleet.enqueue(agent))
    schedule = create(agent, SOON)
    tick(DUE)
    assert outcomes(schedule) == [(DUE, "queued", "")]
    fleet.finish(busy, now=AFTER)
    fleet.finish(start(fleet, schedule, AFTER), now=AFTER)
    assert states(schedule) == ("completed", "")
    assert work_states(agent) == ["done", "done"]


def test_a_one_shot_with_unfinished_work_violates_no_invariant_and_one_without_work_does(
    fleet: Fleet,
):
    agent = fleet.agent()
    schedule = create(agent, SOON, jitter_seconds=600)
    due.claim_due_schedules(DUE)
    assert violations(DUE) == []
    firings.decide_firings(AFTER)
    assert violations(AFTER) == []
    last_work(schedule).delete()
    assert "active_schedule_without_a_next_fire_time" in [found.name for found in violations(AFTER)]
