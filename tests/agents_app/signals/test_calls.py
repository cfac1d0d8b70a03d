"""Calls between agents: admitted or queued, limited in depth, answered or ended."""

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.errors import DroverError, NotFound, Refused
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import AgentCall, Run
from agents_app.runs import control, lifecycle
from agents_app.signals import calls
from agents_app.signals.calls import SelfCall, TooDeep
from tests.agents_app.calling import Program, called, program, work_of
from tests.agents_app.fleet import NOON, Fleet, at, event_names


@pytest.fixture
def caller(fleet: Fleet) -> Program:
    return program(fleet, fleet.agent("a"))


def test_a_call_starts_a_run_that_knows_its_caller(fleet: Fleet, caller: Program):
    made = caller.says("call", agent=fleet.agent("b").name, text="do it")
    assert made == {"ok": True, "callId": made["callId"], "status": "pending"}
    callee = called(fleet, made["callId"])
    run = callee.run
    assert (run.trigger, run.depth, run.parent_run_id) == ("call", 1, caller.job.run_id)
    assert run.trace_id == caller.run.trace_id
    assert (callee.job.prompt, run.requested_by) == ("do it", f"a, run {caller.job.run_id}")
    assert caller.says("check", id=made["callId"])["status"] == "running"
    callee.says("return", text="done: ✓")
    callee.ends()
    told = caller.says("check", id=made["callId"])
    assert told == {**made, "status": "completed", "returnValue": "done: ✓"}
    assert "run.called" in event_names(caller.job.run_id)


@pytest.mark.fault("F46")
def test_an_agent_that_calls_itself_is_refused(caller: Program):
    with pytest.raises(SelfCall) as caught:
        caller.says("call", agent="a")
    assert (caught.value.code, caught.value.http_status) == ("self_call", 409)
    assert AgentCall.objects.count() == 0


@pytest.mark.fault("F47")
def test_a_loop_of_calls_is_refused_at_the_maximum_depth_with_the_chain(
    fleet: Fleet, caller: Program
):
    a, b = caller.run.agent, fleet.agent("b", scale=9)
    a.scale = 9
    a.save()
    one = caller
    for agent in (b, a, b):
        one = called(fleet, one.calls(agent))
    with pytest.raises(TooDeep, match="a → b → a → b → a") as caught:
        one.says("call", agent="a")
    assert (caught.value.http_status, one.run.depth) == (409, 3)


def test_a_missing_or_disabled_agent_cannot_be_called(fleet: Fleet, caller: Program):
    fleet.agent("gone", removed_at=NOON)
    fleet.agent("off", scale=0)
    for name in ("unknown", "gone", "A", ""):
        with pytest.raises(NotFound):
            caller.says("call", agent=name)
    with pytest.raises(Refused, match="scale is 0"):
        caller.says("call", agent="off")


def test_a_call_of_a_busy_agent_is_queued(fleet: Fleet, caller: Program):
    b = fleet.agent("b")
    busy = program(fleet, b)
    call = caller.calls(b)
    assert work_of(call).state == "queued"
    assert caller.says("check", id=call)["status"] == "pending"
    busy.ends()
    assert work_of(call).state == "admitted"


def test_a_call_is_visible_to_its_caller_only(fleet: Fleet, caller: Program):
    b = fleet.agent("b")
    call = caller.calls(b)
    other = program(fleet, fleet.agent("other"))
    for signal, fields in (("check", {"id": call}), ("wait", {"ids": [call]})):
        with pytest.raises(NotFound):
            other.says(signal, **fields)


@pytest.mark.parametrize("state", ["failed", "timed_out", "stopped"])
def test_a_called_run_that_fails_is_an_error_with_the_reason(
    fleet: Fleet, caller: Program, state: str
):
    call = caller.calls(fleet.agent("b"))
    called(fleet, call).ends(state, error="it broke")
    told = caller.says("check", id=call)
    assert (told["status"], told["errorMessage"]) == ("error", "it broke")


def test_a_call_is_pending_again_when_its_lost_run_is_retried(fleet: Fleet, caller: Program):
    call = caller.calls(fleet.agent("b", on_lost="retry"))
    first = called(fleet, call)
    in_transaction(lambda: lifecycle.lose_run(first.run, NOON, "lost"))
    assert caller.says("check", id=call)["status"] == "pending"


# --- the caller's end -----------------------------------------------------------------------


def _finish(one: Program) -> None:
    one.ends()


def _lose(one: Program) -> None:
    in_transaction(lambda: lifecycle.lose_run(one.run, NOON, "lost"))


def _stop(one: Program) -> None:
    control.stop_run(one.run, "ann", NOON)
    one.ends("stopped")


@pytest.mark.parametrize("end", [_finish, _lose, _stop])
def test_the_end_of_a_caller_fails_its_open_calls(fleet: Fleet, caller: Program, end):
    b, c = fleet.agent("b", scale=2), fleet.agent("c")
    done, running = caller.calls(b), caller.calls(b)
    program(fleet, c)
    queued = caller.calls(c)
    called(fleet, done).ends()
    callee = called(fleet, running)
    end(caller)
    states = {
        each.call_id: each for each in calls.states(caller.job.run_id, [done, running, queued])
    }
    assert states[done].status == "completed"
    for call in (running, queued):
        assert (states[call].status, states[call].error) == (
            "error",
            "the caller had already finished",
        )
    item = work_of(queued)
    assert (item.state, item.reason) == ("dropped", "the caller had already finished")
    assert callee.run.state == "running"
    callee.ends()
    assert work_of(running).state == "done"


def test_a_run_without_signals_needs_no_query_for_calls_at_its_end(
    fleet: Fleet, caller: Program, monkeypatch
):
    monkeypatch.setattr(lifecycle, "end_calls", lambda *_: pytest.fail("it looked for calls"))
    caller.ends()
    assert caller.run.state == "succeeded"


def test_a_call_without_a_result_ends_after_two_hours(fleet: Fleet, caller: Program):
    b, c = fleet.agent("b"), fleet.agent("c")
    running, queued = caller.calls(b), caller.calls(c)
    called(fleet, running)
    control.pause_agent(c, "ann", NOON)
    assert calls.end_overdue(at(7199)) == 0
    assert reconcile(at(7200), "here")["calls_ended"] == 2
    told = {each.call_id: each.error for each in calls.states(caller.job.run_id, [running, queued])}
    assert set(told.values()) == {"no answer within 2 hours"}


def test_the_result_of_a_call_stays_readable_after_the_sweep(fleet: Fleet, caller: Program):
    call = caller.calls(fleet.agent("b"))
    callee = called(fleet, call)
    callee.says("return", text="well")
    callee.ends()
    assert calls.end_overdue(at(7200)) == 0
    assert AgentCall.objects.get().ended_at == at(7200)
    assert calls.check(caller.job.run_id, call).return_value == "well"


# --- many -----------------------------------------------------------------------------------


def test_calls_beyond_the_size_of_the_queue_end_with_an_error(fleet: Fleet, caller: Program):
    """The queue takes its maximum; the other calls are errors."""
    b = fleet.agent("b", work_queue_size=30)
    made = [caller.calls(b) for _ in range(50)]
    told = caller.says("wait", ids=made)
    errors = [each for each in told["calls"] if each["status"] == "error"]
    pending = [each for each in told["calls"] if each["status"] == "pending"]
    assert (len(errors), len(pending), told["done"]) == (19, 31, False)
    assert {each["errorMessage"] for each in errors} == {
        "overflow: more than 30 work items were queued"
    }
    assert Run.objects.filter(agent=b, slot__isnull=False).count() == 1


# --- the tree -------------------------------------------------------------------------------


def test_every_run_of_a_call_tree_shows_the_whole_tree(fleet: Fleet, caller: Program):
    b, c = fleet.agent("b"), fleet.agent("c")
    to_b, to_c = caller.calls(b), caller.calls(c)
    in_b = called(fleet, to_b)
    in_b.calls(c)
    called(fleet, to_c).ends("failed", error="no")
    tree = calls.call_tree(caller.run)
    assert (tree.agent, tree.run_id, tree.state, tree.call_id) == (
        *("a", caller.job.run_id),
        *("running", None),
    )
    assert [(each.agent, each.status, each.state) for each in tree.calls] == [
        ("b", "running", "running"),
        ("c", "error", "failed"),
    ]
    (below,) = tree.calls[0].calls
    assert (below.agent, below.status, below.state) == ("c", "pending", "pending")
    for run in Run.objects.select_related("agent"):
        assert calls.call_tree(run) == tree


def test_a_tree_of_one_run_is_that_run(caller: Program):
    assert calls.call_tree(caller.run).calls == ()


def test_errors_name_what_was_wrong(caller: Program):
    with pytest.raises(DroverError, match="there is no agent 'unknown'"):
        caller.says("call", agent="unknown")
