"""The limit of unfinished runs: the scale of an agent and the cap of its project."""

import time

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.errors import Refused
from agents_app.models import Agent, Run, Tenant
from agents_app.runs import control, dispatch
from agents_app.runs.slots import lowest_free_number
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, work_states


def unfinished() -> int:
    return Run.objects.filter(slot__isnull=False).count()


def cap(tenant: Tenant, scale: int | None) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(scale=scale)


# --- choosing a number ----------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 20), st.lists(st.none() | st.integers(0, 30), max_size=25))
def test_a_free_slot_is_the_lowest_unused_number_below_the_scale(scale, used):
    slot = lowest_free_number(scale, used)
    if len(used) >= scale:
        assert slot is None
    else:
        assert slot is not None
        assert slot not in used
        assert all(lower in used for lower in range(slot))
        assert slot < scale


def test_the_last_slot_of_a_large_scale_is_found_quickly():
    used: list[int | None] = list(range(9_999))
    began = time.perf_counter()
    assert lowest_free_number(10_000, used) == 9_999
    assert time.perf_counter() - began < 0.2


# --- an agent's scale -----------------------------------------------------------------------


def test_a_slot_that_was_released_is_used_again(fleet: Fleet):
    agent = fleet.agent(scale=3)
    items = [fleet.enqueue(agent) for _ in range(3)]
    fleet.finish(fleet.start(items[1]))
    assert live_run(fleet.enqueue(agent)).slot == 1


def test_after_a_lowered_scale_no_work_is_admitted_until_enough_runs_have_finished(fleet: Fleet):
    agent = fleet.agent(scale=3)
    jobs = [fleet.start(fleet.enqueue(agent)) for _ in range(3)]
    waiting = [fleet.enqueue(agent) for _ in range(2)]
    control.scale_agent(agent, 1, "ann", at(1))
    fleet.finish(jobs[0], now=at(2))
    fleet.finish(jobs[1], now=at(3))
    assert run_states(agent) == ["succeeded", "succeeded", "running"]
    fleet.finish(jobs[2], now=at(4))
    assert live_run(waiting[0]).slot == 0
    assert unfinished() == 1


def test_a_raised_scale_takes_effect_immediately(fleet: Fleet):
    agent = fleet.agent(scale=1)
    for _ in range(3):
        fleet.enqueue(agent)
    control.scale_agent(agent, 3, "ann", at(1))
    assert set(agent.runs.values_list("slot", flat=True)) == {0, 1, 2}


def test_scale_zero_lets_running_runs_finish_and_starts_none(fleet: Fleet):
    agent = fleet.agent(scale=1)
    job = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    control.scale_agent(agent, 0, "ann", at(1))
    assert fleet.finish(job, now=at(2)) is None
    assert work_states(agent) == ["done", "queued"]
    assert dispatch.admit_waiting(agent.pk, at(3)) == 0


def test_a_new_scale_never_gives_a_slot_twice(fleet: Fleet):
    agent = fleet.agent(scale=3)
    jobs = [fleet.start(fleet.enqueue(agent)) for _ in range(3)]
    for _ in range(4):
        fleet.enqueue(agent)
    fleet.finish(jobs[0])
    for scale in (1, 2, 5, 0, 3):
        control.scale_agent(agent, scale, "ann", at(1))
    slots = list(agent.runs.filter(slot__isnull=False).values_list("slot", flat=True))
    assert len(slots) == len(set(slots)) == 5


@pytest.mark.parametrize("scale", [-1, 10_001])
def test_an_impossible_scale_is_refused(fleet: Fleet, scale):
    agent = fleet.agent()
    with pytest.raises(Refused, match="0 to 10000"):
        control.scale_agent(agent, scale, "ann", NOON)


# --- constraints of the database ------------------------------------------------------------


def _assert_copy_is_refused(run: Run, **changes: object) -> None:
    """Asserts that the database refuses a copy of the run with these changes."""
    run.pk = None
    for name, value in changes.items():
        setattr(run, name, value)
    with pytest.raises(IntegrityError), transaction.atomic():
        run.save(force_insert=True)


def test_two_runs_cannot_hold_one_slot(fleet: Fleet):
    agent = fleet.agent(scale=2)
    first, second = fleet.enqueue(agent), fleet.enqueue(agent)
    run = live_run(first)
    live_run(second).delete()
    _assert_copy_is_refused(run, work_item=second)


def test_two_runs_cannot_hold_one_project_slot(fleet: Fleet):
    cap(fleet.tenant, 2)
    first, second = fleet.enqueue(fleet.agent("a")), fleet.enqueue(fleet.agent("b"))
    run = live_run(first)
    other = live_run(second)
    other.delete()
    _assert_copy_is_refused(run, work_item=second, agent=second.agent)


def test_a_work_item_cannot_have_two_live_runs(fleet: Fleet):
    _assert_copy_is_refused(live_run(fleet.enqueue(fleet.agent(scale=2))), slot=1)


def test_an_unfinished_run_without_a_slot_cannot_be_written(fleet: Fleet):
    run = live_run(fleet.enqueue(fleet.agent()))
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(slot=None)


def test_a_finished_run_that_keeps_its_slot_cannot_be_written(fleet: Fleet):
    run = live_run(fleet.enqueue(fleet.agent()))
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(state="succeeded")


# --- the project's cap ----------------------------------------------------------------------


def test_all_agents_together_stay_below_the_projects_cap(fleet: Fleet):
    cap(fleet.tenant, 2)
    agents = [fleet.agent(name, scale=5) for name in ("a", "b", "c")]
    for agent in agents:
        for _ in range(2):
            fleet.enqueue(agent)
    assert unfinished() == 2
    assert set(Run.objects.values_list("project_slot", flat=True)) == {0, 1}


def test_a_cap_set_during_runs_counts_these_runs(fleet: Fleet):
    agent = fleet.agent(scale=5)
    jobs = [fleet.start(fleet.enqueue(agent)) for _ in range(3)]
    cap(fleet.tenant, 2)
    fleet.enqueue(agent)
    assert unfinished() == 3
    for job in jobs[:2]:
        fleet.finish(job)
        dispatch.admit_under_cap(fleet.tenant.pk, at(1))
    assert unfinished() == 2
    assert work_states(agent) == ["done", "done", "admitted", "admitted"]


def test_after_a_cap_is_removed_all_queued_work_starts(fleet: Fleet):
    cap(fleet.tenant, 1)
    agent = fleet.agent(scale=3)
    for _ in range(3):
        fleet.enqueue(agent)
    cap(fleet.tenant, None)
    assert dispatch.admit_waiting(agent.pk, at(1)) == 2


def test_a_project_slot_goes_to_the_oldest_work_of_all_agents(fleet: Fleet):
    cap(fleet.tenant, 1)
    agents = [fleet.agent(name, scale=5) for name in ("a", "b", "c")]
    order = [agents[n] for n in (0, 0, 2, 1, 0)]
    items = [fleet.enqueue(agent) for agent in order]
    for item in items:
        fleet.finish(fleet.start(item))
        dispatch.admit_under_cap(fleet.tenant.pk, at(1))
    assert not Run.objects.exclude(state="succeeded").exists()


def test_a_blocked_agent_does_not_keep_a_project_slot_from_younger_work(fleet: Fleet):
    cap(fleet.tenant, 1)
    first = fleet.enqueue(fleet.agent("a"))
    fleet.enqueue(fleet.agent("paused"))
    third = fleet.enqueue(fleet.agent("c"))
    Agent.objects.filter(name="paused").update(paused_at=NOON)
    fleet.finish(fleet.start(first))
    dispatch.admit_under_cap(fleet.tenant.pk, at(1))
    assert live_run(third).state == "pending"


def test_without_a_cap_the_oldest_work_of_the_tenant_is_not_read(
    fleet: Fleet, django_assert_num_queries
):
    fleet.enqueue(fleet.agent())
    with django_assert_num_queries(1):
        dispatch.admit_under_cap(fleet.tenant.pk, at(1))


def _two_paused_agents_with_queued_work(fleet: Fleet) -> tuple[Agent, Agent]:
    """Agent `a` was created first, but the work of `b` is older."""
    cap(fleet.tenant, 2)
    a, b = fleet.agent("a", scale=5), fleet.agent("b", scale=5)
    Tenant.objects.update(paused_at=NOON)
    for agent in (b, b, a, a):
        fleet.enqueue(agent)
    return a, b


def test_a_resumed_project_gives_its_slots_to_the_oldest_work(fleet: Fleet):
    a, b = _two_paused_agents_with_queued_work(fleet)
    control.resume_tenant(fleet.tenant, "ann", at(1))
    assert (run_states(b), run_states(a)) == (["pending", "pending"], [])


def test_the_sweep_gives_project_slots_to_the_oldest_work(fleet: Fleet):
    from agents_app.maintenance.reconcile import reconcile

    a, b = _two_paused_agents_with_queued_work(fleet)
    Tenant.objects.update(paused_at=None)
    reconcile(at(1), "somewhere")
    assert (run_states(b), run_states(a)) == (["pending", "pending"], [])
