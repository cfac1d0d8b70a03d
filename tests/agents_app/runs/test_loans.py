"""A waiting run lends its slot to the run that it called; the number of used slots is constant."""

from typing import Any

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.maintenance.invariants import violations
from agents_app.models import Agent, Run, Tenant
from agents_app.models.run import LENT
from agents_app.runs import control, dispatch, lifecycle
from agents_app.signals import cancel_wait
from tests.agents_app.calling import Program, called, program, work_of
from tests.agents_app.fleet import NOON, Fleet, at


def held_slots(*programs: Program) -> list[tuple[bool, int | None, int | None]]:
    """For each program: whether its run is unfinished, its slot and project slot; -1 if lent."""
    rows = [each.run for each in programs]
    return [(r.slot is not None, _shown(r.slot), _shown(r.project_slot)) for r in rows]


def _shown(number: int | None) -> int | None:
    return -1 if number is not None and number >= LENT else number


def _assert_invariants() -> None:
    timed = {"work_queued_despite_a_free_slot", "due_schedule_that_no_beat_claims"}
    assert [found for found in violations(NOON) if found.name not in timed] == []


def capped(fleet: Fleet, cap: int) -> None:
    Tenant.objects.filter(pk=fleet.tenant.pk).update(scale=cap)


def loop(fleet: Fleet) -> tuple[Program, Program, int]:
    """Agent a of scale 1 calls agent b and waits; b calls a."""
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    to_b = first.calls(b)
    second = called(fleet, to_b)
    first.waits(to_b)
    return first, second, second.calls(a)


# --- an agent's slot ------------------------------------------------------------------------


def test_a_loop_of_calls_runs_in_the_slot_of_the_waiting_run(fleet: Fleet):
    first, second, back = loop(fleet)
    assert work_of(back).state == "queued"
    second.waits(back)
    third = called(fleet, back)
    assert held_slots(first, second, third) == [(True, -1, None), (True, 0, None), (True, 0, None)]
    assert third.run.borrowed_from_id == first.job.run_id
    _assert_invariants()


def test_a_slot_returns_to_its_lender_and_not_to_the_next_work_item(fleet: Fleet):
    first, second, back = loop(fleet)
    not_called = fleet.enqueue(first.run.agent)
    second.waits(back)
    third = called(fleet, back)
    assert third.ends(hand_over=True) is None
    assert held_slots(first, third) == [(True, 0, None), (False, None, None)]
    not_called.refresh_from_db()
    assert not_called.state == "queued"
    assert second.waits(back)["calls"][0]["status"] == "completed"
    _assert_invariants()


def test_a_run_that_does_not_wait_lends_no_slot(fleet: Fleet):
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    second = called(fleet, first.calls(b))
    back = second.calls(a)
    assert second.waits(back)["calls"][0]["status"] == "pending"
    assert work_of(back).state == "queued"
    assert held_slots(first) == [(True, 0, None)]


def test_a_run_whose_wait_is_too_old_lends_no_slot(fleet: Fleet):
    first, second, back = loop(fleet)
    second.waits(back, now=at(90))
    assert work_of(back).state == "queued"
    assert held_slots(first) == [(True, 0, None)]


def test_work_that_was_not_called_never_runs_in_a_lent_slot(fleet: Fleet):
    first, _, _ = loop(fleet)
    not_called = fleet.enqueue(first.run.agent)
    assert not dispatch.admit_on_loan(not_called.pk, NOON)
    other = program(fleet, fleet.agent("c"))
    call = other.calls(first.run.agent)
    other.waits(call)
    assert work_of(call).state == "queued"
    assert held_slots(first) == [(True, 0, None)]


def test_a_paused_agent_starts_no_run_in_a_lent_slot(fleet: Fleet):
    first, second, back = loop(fleet)
    control.pause_agent(first.run.agent, "ann", NOON)
    second.waits(back)
    assert work_of(back).state == "queued"


def test_a_slot_is_lent_along_a_chain_of_calls_and_returned_step_by_step(fleet: Fleet):
    a, b = fleet.agent("a", max_call_depth=9), fleet.agent("b", max_call_depth=9)
    chain, agents = [program(fleet, a)], [b, a, b, a]
    for agent in agents:
        call = chain[-1].calls(agent)
        chain[-1].waits(call)
        chain.append(called(fleet, call))
    assert [place for _, place, _ in held_slots(*chain)] == [-1, -1, -1, 0, 0]
    _assert_invariants()
    for last in range(len(chain) - 1, 0, -1):
        chain[last].ends()
        _assert_invariants()
    assert held_slots(chain[0]) == [(True, 0, None)]


# --- the project's cap ----------------------------------------------------------------------


def test_under_a_cap_of_one_a_call_runs_in_the_project_slot_of_its_caller(fleet: Fleet):
    capped(fleet, 1)
    first = program(fleet, fleet.agent("a"))
    call = first.calls(fleet.agent("b"))
    assert work_of(call).state == "queued"
    first.waits(call)
    second = called(fleet, call)
    assert held_slots(first, second) == [(True, 0, -1), (True, 0, 0)]
    assert dispatch.admit_under_cap(fleet.tenant.pk, NOON) == 0
    second.ends()
    assert held_slots(first) == [(True, 0, 0)]
    _assert_invariants()


def test_slot_and_project_slot_may_have_different_lenders(fleet: Fleet):
    capped(fleet, 1)
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    to_b = first.calls(b)
    first.waits(to_b)
    second = called(fleet, to_b)
    back = second.calls(a)
    second.waits(back)
    third = called(fleet, back)
    assert held_slots(first, second, third) == [(True, -1, -1), (True, 0, -1), (True, 0, 0)]
    _assert_invariants()
    third.ends()
    assert held_slots(first, second) == [(True, 0, -1), (True, 0, 0)]
    second.ends()
    assert held_slots(first) == [(True, 0, 0)]
    _assert_invariants()


def test_a_cap_that_was_set_later_does_not_block_a_tree_of_calls(fleet: Fleet):
    first = program(fleet, fleet.agent("a"))
    capped(fleet, 1)
    call = first.calls(fleet.agent("b"))
    first.waits(call)
    second = called(fleet, call)
    assert held_slots(first, second) == [(True, 0, -1), (True, 0, None)]
    assert dispatch.admit_under_cap(fleet.tenant.pk, NOON) == 0
    second.ends()
    assert held_slots(first) == [(True, 0, None)]


def test_several_calls_use_the_only_project_slot_one_after_the_other(fleet: Fleet):
    capped(fleet, 1)
    first = program(fleet, fleet.agent("a"))
    made = [first.calls(fleet.agent(name)) for name in ("b", "c", "d")]
    for number, call in enumerate(made):
        first.waits(*made)
        states = [work_of(each).state for each in made]
        assert states == ["done"] * number + ["admitted"] + ["queued"] * (2 - number)
        called(fleet, call).ends()
    assert first.waits(*made)["done"]
    assert first.run.waiting_since is None


# --- changes during a loan ------------------------------------------------------------------


def _stop(fleet: Fleet, each: Program) -> None:
    each.ends("stopped")


def _time_out(fleet: Fleet, each: Program) -> None:
    each.ends("timed_out")


def _lose(fleet: Fleet, each: Program) -> None:
    in_transaction(lambda: lifecycle.lose_run(each.run, NOON, "lost"))


ENDINGS = [_stop, _time_out, _lose]


@pytest.mark.parametrize("end", ENDINGS)
def test_the_borrower_keeps_the_slot_when_its_lender_ends(fleet: Fleet, end: Any):
    first, second, back = loop(fleet)
    waiting = fleet.enqueue(first.run.agent)
    second.waits(back)
    third = called(fleet, back)
    end(fleet, first)
    assert held_slots(first, third) == [(False, None, None), (True, 0, None)]
    assert third.run.borrowed_from_id is None
    waiting.refresh_from_db()
    assert waiting.state == "queued"
    _assert_invariants()
    following = third.ends(hand_over=True)
    assert following is not None and following.work_item_id == waiting.pk
    _assert_invariants()


@pytest.mark.parametrize("end", ENDINGS)
def test_a_borrower_that_fails_returns_its_slot(fleet: Fleet, end: Any):
    first, second, back = loop(fleet)
    second.waits(back)
    third = called(fleet, back)
    end(fleet, third)
    assert held_slots(first, third) == [(True, 0, None), (False, None, None)]
    assert second.waits(back)["calls"][0]["status"] == "error"
    _assert_invariants()


def test_a_borrower_that_is_stopped_before_it_starts_returns_its_slot(fleet: Fleet):
    first, second, back = loop(fleet)
    second.waits(back)
    borrower = Run.objects.get(work_item=work_of(back))
    control.stop_run(borrower, "ann", NOON)
    assert held_slots(first) == [(True, 0, None)]
    _assert_invariants()


def test_a_slot_returns_to_its_first_lender_when_a_run_between_them_ends(fleet: Fleet):
    a, b = fleet.agent("a", max_call_depth=9), fleet.agent("b", max_call_depth=9, scale=9)
    chain = [program(fleet, a)]
    for agent in (b, a, b, a):
        call = chain[-1].calls(agent)
        chain[-1].waits(call)
        chain.append(called(fleet, call))
    top, _, middle, _, last = chain
    assert [place for _, place, _ in held_slots(top, middle, last)] == [-1, -1, 0]
    middle.ends("stopped")
    assert last.run.borrowed_from_id == top.job.run_id
    _assert_invariants()
    last.ends()
    assert held_slots(top) == [(True, 0, None)]
    _assert_invariants()


def test_a_lost_borrower_borrows_again_when_it_is_retried(fleet: Fleet):
    first, second, back = loop(fleet)
    Agent.objects.update(on_lost="retry")
    second.waits(back)
    _lose(fleet, called(fleet, back))
    assert held_slots(first) == [(True, 0, None)]
    second.waits(back)
    third = called(fleet, back)
    assert (third.job.attempt, third.run.borrowed_from_id) == (2, first.job.run_id)
    _assert_invariants()


def test_a_tree_of_calls_finishes_after_the_scale_was_lowered(fleet: Fleet):
    a, b = fleet.agent("a", scale=2), fleet.agent("b")
    busy, first = program(fleet, a), program(fleet, a)
    to_b = first.calls(b)
    second = called(fleet, to_b)
    first.waits(to_b)
    control.scale_agent(a, 1, "ann", NOON)
    back = second.calls(a)
    second.waits(back)
    third = called(fleet, back)
    assert held_slots(busy, first, third) == [(True, 0, None), (True, -1, None), (True, 1, None)]
    third.ends()
    assert held_slots(first) == [(True, 1, None)]
    _assert_invariants()


def test_a_caller_that_stops_waiting_continues_while_the_callee_keeps_the_slot(fleet: Fleet):
    """The only case in which one run more than the scale works, until the callee ends."""
    first, second, back = loop(fleet)
    second.waits(back)
    third = called(fleet, back)
    cancel_wait(first.job.token, "wait", {"ids": [1]}, NOON)
    assert first.run.waiting_since is None
    assert held_slots(first, third) == [(True, -1, None), (True, 0, None)]
    third.ends()
    assert held_slots(first) == [(True, 0, None)]


def test_a_call_of_a_paused_agent_does_not_prevent_other_calls_from_borrowing_the_slot(
    fleet: Fleet,
):
    Tenant.objects.update(scale=1)
    first = program(fleet, fleet.agent("a"))
    paused = first.calls(fleet.agent("b"))
    other = first.calls(fleet.agent("c"))
    Agent.objects.filter(name="b").update(paused_at=NOON)
    first.waits(paused, other)
    assert work_of(paused).state == "queued"
    assert work_of(other).state == "admitted"
