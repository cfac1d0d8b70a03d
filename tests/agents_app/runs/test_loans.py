"""Whoever waits lends its place to what it called; there are never more places than before."""

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


def places(*programs: Program) -> list[tuple[bool, int | None, int | None]]:
    """For each: whether it is unfinished, and what it holds; a lent place shows as -1."""
    rows = [each.run for each in programs]
    return [(r.slot is not None, _shown(r.slot), _shown(r.project_slot)) for r in rows]


def _shown(number: int | None) -> int | None:
    return -1 if number is not None and number >= LENT else number


def _well() -> None:
    timed = {"work_that_waits_beside_a_free_slot", "due_schedule_that_no_beat_claims"}
    assert [found for found in violations(NOON) if found.name not in timed] == []


def capped(fleet: Fleet, cap: int) -> None:
    Tenant.objects.filter(pk=fleet.tenant.pk).update(scale=cap)


def loop(fleet: Fleet) -> tuple[Program, Program, int]:
    """A of scale 1 calls B and waits, and B calls A."""
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    to_b = first.calls(b)
    second = called(fleet, to_b)
    first.waits(to_b)
    return first, second, second.calls(a)


# --- an agent's slot ------------------------------------------------------------------------


def test_a_loop_of_calls_runs_in_the_slot_of_the_one_that_waits(fleet: Fleet):
    first, second, back = loop(fleet)
    assert work_of(back).state == "queued"
    second.waits(back)
    third = called(fleet, back)
    assert places(first, second, third) == [(True, -1, None), (True, 0, None), (True, 0, None)]
    assert third.run.borrowed_from_id == first.job.run_id
    _well()


def test_the_place_goes_back_to_the_lender_and_not_to_the_next_in_the_queue(fleet: Fleet):
    first, second, back = loop(fleet)
    stranger = fleet.ask(first.run.agent)
    second.waits(back)
    third = called(fleet, back)
    assert third.ends(hand_over=True) is None
    assert places(first, third) == [(True, 0, None), (False, None, None)]
    stranger.refresh_from_db()
    assert stranger.state == "queued"
    assert second.waits(back)["calls"][0]["status"] == "completed"
    _well()


def test_nobody_lends_who_does_not_wait(fleet: Fleet):
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    second = called(fleet, first.calls(b))
    back = second.calls(a)
    assert second.waits(back)["calls"][0]["status"] == "pending"
    assert work_of(back).state == "queued"
    assert places(first) == [(True, 0, None)]


def test_a_run_that_waited_long_ago_is_not_waiting_now(fleet: Fleet):
    first, second, back = loop(fleet)
    second.waits(back, now=at(90))
    assert work_of(back).state == "queued"
    assert places(first) == [(True, 0, None)]


def test_work_of_strangers_never_runs_in_a_place_on_loan(fleet: Fleet):
    first, _, _ = loop(fleet)
    stranger = fleet.ask(first.run.agent)
    assert not dispatch.admit_on_loan(stranger.pk, NOON)
    other = program(fleet, fleet.agent("c"))
    call = other.calls(first.run.agent)
    other.waits(call)
    assert work_of(call).state == "queued"
    assert places(first) == [(True, 0, None)]


def test_a_paused_agent_starts_nothing_on_loan_either(fleet: Fleet):
    first, second, back = loop(fleet)
    control.pause_agent(first.run.agent, "ann", NOON)
    second.waits(back)
    assert work_of(back).state == "queued"


def test_a_place_is_lent_on_along_the_chain_and_comes_back_step_by_step(fleet: Fleet):
    a, b = fleet.agent("a", max_call_depth=9), fleet.agent("b", max_call_depth=9)
    chain, agents = [program(fleet, a)], [b, a, b, a]
    for agent in agents:
        call = chain[-1].calls(agent)
        chain[-1].waits(call)
        chain.append(called(fleet, call))
    assert [place for _, place, _ in places(*chain)] == [-1, -1, -1, 0, 0]
    _well()
    for last in range(len(chain) - 1, 0, -1):
        chain[last].ends()
        _well()
    assert places(chain[0]) == [(True, 0, None)]


# --- the project's cap ----------------------------------------------------------------------


def test_under_a_cap_of_one_a_call_runs_in_its_caller_s_place(fleet: Fleet):
    capped(fleet, 1)
    first = program(fleet, fleet.agent("a"))
    call = first.calls(fleet.agent("b"))
    assert work_of(call).state == "queued"
    first.waits(call)
    second = called(fleet, call)
    assert places(first, second) == [(True, 0, -1), (True, 0, 0)]
    assert dispatch.admit_under_cap(fleet.tenant.pk, NOON) == 0
    second.ends()
    assert places(first) == [(True, 0, 0)]
    _well()


def test_slot_and_place_may_have_two_lenders(fleet: Fleet):
    capped(fleet, 1)
    a, b = fleet.agent("a"), fleet.agent("b")
    first = program(fleet, a)
    to_b = first.calls(b)
    first.waits(to_b)
    second = called(fleet, to_b)
    back = second.calls(a)
    second.waits(back)
    third = called(fleet, back)
    assert places(first, second, third) == [(True, -1, -1), (True, 0, -1), (True, 0, 0)]
    _well()
    third.ends()
    assert places(first, second) == [(True, 0, -1), (True, 0, 0)]
    second.ends()
    assert places(first) == [(True, 0, 0)]
    _well()


def test_a_cap_that_was_set_later_does_not_hold_a_tree_of_calls_up(fleet: Fleet):
    first = program(fleet, fleet.agent("a"))
    capped(fleet, 1)
    call = first.calls(fleet.agent("b"))
    first.waits(call)
    second = called(fleet, call)
    assert places(first, second) == [(True, 0, -1), (True, 0, None)]
    assert dispatch.admit_under_cap(fleet.tenant.pk, NOON) == 0
    second.ends()
    assert places(first) == [(True, 0, None)]


def test_of_many_calls_one_at_a_time_has_the_only_place(fleet: Fleet):
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


# --- what may happen meanwhile --------------------------------------------------------------


def _stop(fleet: Fleet, each: Program) -> None:
    each.ends("stopped")


def _time_out(fleet: Fleet, each: Program) -> None:
    each.ends("timed_out")


def _lose(fleet: Fleet, each: Program) -> None:
    in_transaction(lambda: lifecycle.lose_run(each.run, NOON, "lost"))


ENDINGS = [_stop, _time_out, _lose]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_lender_that_ends_leaves_its_place_to_the_borrower(fleet: Fleet, end: Any):
    first, second, back = loop(fleet)
    waiting = fleet.ask(first.run.agent)
    second.waits(back)
    third = called(fleet, back)
    end(fleet, first)
    assert places(first, third) == [(False, None, None), (True, 0, None)]
    assert third.run.borrowed_from_id is None
    waiting.refresh_from_db()
    assert waiting.state == "queued"
    _well()
    following = third.ends(hand_over=True)
    assert following is not None and following.work_item_id == waiting.pk
    _well()


@pytest.mark.parametrize("end", ENDINGS)
def test_a_borrower_that_ends_badly_gives_the_place_back_as_well(fleet: Fleet, end: Any):
    first, second, back = loop(fleet)
    second.waits(back)
    third = called(fleet, back)
    end(fleet, third)
    assert places(first, third) == [(True, 0, None), (False, None, None)]
    assert second.waits(back)["calls"][0]["status"] == "error"
    _well()


def test_a_borrower_that_is_stopped_before_it_starts_gives_the_place_back(fleet: Fleet):
    first, second, back = loop(fleet)
    second.waits(back)
    borrower = Run.objects.get(work_item=work_of(back))
    control.stop_run(borrower, "ann", NOON)
    assert places(first) == [(True, 0, None)]
    _well()


def test_the_middle_of_a_chain_may_end_and_the_place_finds_its_way_home(fleet: Fleet):
    a, b = fleet.agent("a", max_call_depth=9), fleet.agent("b", max_call_depth=9, scale=9)
    chain = [program(fleet, a)]
    for agent in (b, a, b, a):
        call = chain[-1].calls(agent)
        chain[-1].waits(call)
        chain.append(called(fleet, call))
    top, _, middle, _, last = chain
    assert [place for _, place, _ in places(top, middle, last)] == [-1, -1, 0]
    middle.ends("stopped")
    assert last.run.borrowed_from_id == top.job.run_id
    _well()
    last.ends()
    assert places(top) == [(True, 0, None)]
    _well()


def test_a_lost_borrower_that_is_tried_again_borrows_again(fleet: Fleet):
    first, second, back = loop(fleet)
    Agent.objects.update(on_lost="retry")
    second.waits(back)
    _lose(fleet, called(fleet, back))
    assert places(first) == [(True, 0, None)]
    second.waits(back)
    third = called(fleet, back)
    assert (third.job.attempt, third.run.borrowed_from_id) == (2, first.job.run_id)
    _well()


def test_a_scale_that_was_lowered_meanwhile_lets_the_tree_finish(fleet: Fleet):
    a, b = fleet.agent("a", scale=2), fleet.agent("b")
    busy, first = program(fleet, a), program(fleet, a)
    to_b = first.calls(b)
    second = called(fleet, to_b)
    first.waits(to_b)
    control.scale_agent(a, 1, "ann", NOON)
    back = second.calls(a)
    second.waits(back)
    third = called(fleet, back)
    assert places(busy, first, third) == [(True, 0, None), (True, -1, None), (True, 1, None)]
    third.ends()
    assert places(first) == [(True, 1, None)]
    _well()


def test_a_caller_that_gives_up_waiting_goes_on_while_the_callee_keeps_the_place(fleet: Fleet):
    """The one case in which one more than the scale works, until the callee ends."""
    first, second, back = loop(fleet)
    second.waits(back)
    third = called(fleet, back)
    cancel_wait(first.job.token, "wait", {}, NOON)
    assert first.run.waiting_since is None
    assert places(first, third) == [(True, -1, None), (True, 0, None)]
    third.ends()
    assert places(first) == [(True, 0, None)]


def test_one_that_is_paused_keeps_no_other_from_starting_in_the_callers_place(fleet: Fleet):
    Tenant.objects.update(scale=1)
    first = program(fleet, fleet.agent("a"))
    paused = first.calls(fleet.agent("b"))
    other = first.calls(fleet.agent("c"))
    Agent.objects.filter(name="b").update(paused_at=NOON)
    first.waits(paused, other)
    assert work_of(paused).state == "queued"
    assert work_of(other).state == "admitted"
