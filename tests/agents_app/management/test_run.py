"""Requests for runs on the command line; test_with_a_worker.py executes real programs."""

import pytest

from agents_app.cli.enqueue import exit_code_of
from agents_app.clock import local
from agents_app.models import Agent, Run, Tenant, WorkItem
from agents_app.runs import control
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import call
from tests.parts.redis_part import RedisServer


def test_a_request_that_finds_a_slot_names_its_run(durable_fleet: Fleet):
    durable_fleet.agent()
    said = call("run", "reporter", "--prompt", "count the sheep")
    item = WorkItem.objects.get()
    assert said.code == 0
    assert said.out == f"work item {item.pk}: run {item.runs.get().pk} of reporter\n"
    assert (item.trigger, item.prompt) == ("manual", "count the sheep")
    assert item.requested_by != ""


def test_a_request_that_must_wait_says_why(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    call("run", "reporter")
    call("run", "reporter")
    assert call("run", "reporter").out.endswith("queued: no slot is free, 1 queued before it\n")
    control.pause_agent(agent, "ann", NOON)
    assert call("run", "reporter").out.endswith("queued: the agent is paused\n")
    control.begin_drain("ann", NOON, keep_queue=True)
    assert call("run", "reporter").out.endswith("queued: the scheduler is draining\n")


def test_json_has_the_numbers_of_both(durable_fleet: Fleet):
    durable_fleet.agent()
    first, second = (call("run", "reporter", "--json").json for _ in range(2))
    item, waiting = WorkItem.objects.order_by("pk")
    assert (first["work_item"], first["run"]) == (item.pk, item.runs.get().pk)
    assert (first["state"], first["waits_because"]) == ("admitted", None)
    assert (second["work_item"], second["run"]) == (waiting.pk, None)
    assert second["waits_because"] == "no slot is free, 0 queued before it"


def test_the_hint_has_left_when_the_command_ends(durable_fleet: Fleet, broker: RedisServer):
    agent = durable_fleet.agent()
    call("run", "reporter")
    assert broker.client().llen(f"drover:{agent.queue}") == 1


def test_without_a_worker_people_are_told(durable_fleet: Fleet):
    durable_fleet.agent()
    assert "no worker is running" in call("run", "reporter").err


def test_a_disabled_agent_is_refused_with_what_to_do(durable_fleet: Fleet):
    durable_fleet.agent(scale=0)
    said = call("run", "reporter")
    assert said.code == 1
    assert "give it a scale above 0" in said.err
    assert not WorkItem.objects.exists()


def test_a_rerun_has_the_same_input_and_is_a_persons(durable_fleet: Fleet):
    agent = durable_fleet.agent()
    item = durable_fleet.enqueue(agent, prompt="again", context="because", trigger="webhook")
    run_id = durable_fleet.start(item).run_id
    said = call("rerun", str(run_id), "--json")
    again = WorkItem.objects.get(pk=said.json["work_item"])
    assert again.pk != item.pk
    assert (again.prompt, again.context, again.trigger) == ("again", "because", "manual")
    assert again.requested_by.endswith(f"rerun of run {run_id}")


@pytest.mark.parametrize(
    ("state", "exit_code", "expected"),
    [
        ("succeeded", 0, 0),
        ("succeeded", 42, 0),
        ("failed", 13, 13),
        ("failed", None, 1),
        ("failed", -9, 137),
        ("stopped", -15, 143),
        ("stopped", 0, 1),
        ("timed_out", -9, 124),
        ("lost", None, 1),
    ],
)
def test_a_run_that_was_waited_for_gives_its_exit_code(
    state: str, exit_code: int | None, expected: int
):
    assert exit_code_of(Run(state=state, exit_code=exit_code)) == expected


def test_waiting_for_work_that_is_dropped_fails(durable_fleet: Fleet, monkeypatch):
    durable_fleet.agent(work_queue_size=1)
    call("run", "reporter")
    call("run", "reporter")

    def drop(_: float) -> None:
        call("queue", "clear")

    monkeypatch.setattr("agents_app.output.progress.sleep", drop)
    said = call("run", "reporter", "--wait")
    assert said.code == 1
    assert "never ran: cleared" in said.err


def test_several_runs_are_asked_for_again_at_once(fleet: Fleet):
    agent = fleet.agent(scale=5)
    runs = [fleet.enqueue(agent, prompt=text).runs.get().pk for text in ("one", "two")]
    asked = call("rerun", *map(str, runs), "--json").json["asked"]
    prompts = WorkItem.objects.filter(pk__in=[each["work_item"] for each in asked])
    assert sorted(prompts.values_list("prompt", flat=True)) == ["one", "two"]
    assert call("rerun", *map(str, runs)).out.count("work item") == 2
    assert "--wait follows one run" in call("rerun", "--wait", *map(str, runs)).err


def test_of_several_runs_none_is_asked_for_if_one_is_unknown(fleet: Fleet):
    run = fleet.enqueue(fleet.agent()).runs.get()
    assert call("rerun", str(run.pk), "4711").code == 1
    assert WorkItem.objects.count() == 1


# --- waiting with a time limit ------------------------------------------------------------------


def test_waiting_ends_after_the_timeout_and_the_work_goes_on(durable_fleet: Fleet):
    durable_fleet.agent()
    said = call("run", "reporter", "--wait", "--timeout", "0.3")
    item = WorkItem.objects.get()
    assert said.code == 124
    state = f"run {item.runs.get().pk} is pending"
    assert f"not finished after 0.3 s: work item {item.pk} continues, {state}" in said.err
    assert item.state == "admitted"
    queued = call("run", "reporter", "--wait", "--timeout", "0.1", "--json")
    assert (queued.code, queued.json["state"]) == (124, "queued")
    assert "continues, queued: no slot is free" in queued.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--timeout", "5m"), "--timeout is how long --wait waits: add --wait"),
        (("--wait", "--timeout", "soon"), "--timeout: invalid duration"),
    ],
)
def test_a_wrong_timeout_is_refused_before_work_is_queued(
    durable_fleet: Fleet, options: tuple[str, ...], message: str
):
    durable_fleet.agent()
    said = call("run", "reporter", *options)
    assert (said.code, said.out) == (1, "")
    assert message in said.err
    assert not WorkItem.objects.exists()


def test_a_request_that_waits_for_a_budget_says_until_when(durable_fleet: Fleet):
    """Guard: without the end of the block, a person waits for hours without knowing it."""
    durable_fleet.agent()
    Agent.objects.update(over_budget_until=at(hours=11))
    text = f"the agent's budget is used up until {local(at(hours=11))}"
    said = call("run", "reporter", "--wait", "--timeout", "0.1")
    assert f"queued: {text}\n" in said.out and text in said.err
    Agent.objects.update(over_budget_until=None)
    Tenant.objects.update(over_budget_until=at(hours=12))
    project = f"the project's budget is used up until {local(at(hours=12))}"
    assert call("run", "reporter", "--json").json["waits_because"] == project
