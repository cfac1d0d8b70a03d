"""Hints reach a real Redis after the commit; without Redis no caller waits and nothing breaks."""

import base64
import json
import time
from queue import Queue

import pytest
from django.db import transaction

from agents_app.conf import CONF
from agents_app.events import relay
from agents_app.models import Agent
from tests.agents_app.fleet import Fleet, live_run
from tests.parts.redis_part import RedisServer
from tests.parts.waiting import wait_for


def hints(broker: RedisServer, agent: Agent) -> list[list[int]]:
    """The arguments of every message that waits for the agent, the next one first."""
    with broker.client() as client:
        messages = client.lrange(f"{CONF.redis_prefix}{agent.queue}", 0, -1)
    bodies = [json.loads(message) for message in reversed(messages)]
    return [json.loads(_decoded(body))[0] for body in bodies]


def _decoded(message: dict[str, str]) -> bytes:
    return base64.b64decode(message["body"])


def test_admitted_work_sends_one_hint_that_carries_the_run(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    item = durable_fleet.enqueue(agent)
    assert relay.drain(5)
    assert hints(broker, agent) == [[live_run(item).pk]]


def test_work_that_waits_sends_no_hint(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    for _ in range(3):
        durable_fleet.enqueue(agent)
    assert relay.drain(5)
    assert len(hints(broker, agent)) == 1
    assert relay.waiting_hints([agent.pk]) == {agent.pk: 1}


def test_no_hint_leaves_before_its_run_is_on_disk(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    with transaction.atomic():
        durable_fleet.enqueue(agent)
        relay.drain(5)
        time.sleep(0.05)
        assert hints(broker, agent) == []
    assert relay.drain(5)
    assert len(hints(broker, agent)) == 1


def test_work_that_was_undone_sends_no_hint(durable_fleet: Fleet, broker):
    agent = durable_fleet.agent()
    with transaction.atomic():
        durable_fleet.enqueue(agent)
        transaction.set_rollback(True)
    assert relay.drain(5)
    assert hints(broker, agent) == []


def test_every_agent_has_a_queue_of_its_own(durable_fleet: Fleet, broker):
    a, b = durable_fleet.agent("a", scale=2), durable_fleet.agent("b")
    for agent in (a, b, a):
        durable_fleet.enqueue(agent)
    assert relay.drain(5)
    assert (len(hints(broker, a)), len(hints(broker, b))) == (2, 1)


def test_without_redis_no_caller_waits_and_the_work_is_safe(durable_fleet: Fleet, broker):
    broker.kill()
    agents = [durable_fleet.agent(f"agent-{number}") for number in range(20)]
    began = time.monotonic()
    for agent in agents:
        durable_fleet.enqueue(agent)
    assert time.monotonic() - began < 2
    assert all(agent.runs.get().state == "pending" for agent in agents)


@pytest.mark.fault("F9")
def test_a_relay_that_lost_redis_warns_once_and_goes_on_when_it_is_back(
    durable_fleet: Fleet, broker, caplog
):
    agent = durable_fleet.agent()
    broker.kill()
    private = relay.Relay()
    for number in range(50):
        private.put(number, agent.pk)
    assert private.drain(20)
    warnings = [r.msg for r in caplog.records if r.msg["event"] == "relay.redis_unreachable"]
    assert [line["hints_left"] for line in warnings] == [50]
    broker.start()
    private.put(77, agent.pk)
    wait_for(lambda: hints(broker, agent) == [[77]], 10)


@pytest.mark.parametrize("state", ["down", "frozen"])
@pytest.mark.fault("F9")
def test_the_number_of_waiting_hints_is_unknown_within_two_seconds_without_redis(
    durable_fleet: Fleet, broker, state: str
):
    """Guard: one attempt. With Celery's retries the sweep waits six seconds for the answer."""
    agents = [durable_fleet.agent(f"agent-{number}").pk for number in range(3)]
    broker.kill() if state == "down" else broker.freeze()
    began = time.monotonic()
    assert relay.waiting_hints(agents) is None
    assert time.monotonic() - began < 2


def test_a_full_relay_drops_hints_and_never_blocks():
    stuck = relay.Relay.__new__(relay.Relay)
    stuck._waiting = Queue(2)
    stuck._lost = 0
    for number in range(5):
        stuck.put(number, 1)
    assert stuck._lost == 3
    assert not stuck.drain(0.05)
