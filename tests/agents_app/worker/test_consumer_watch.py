"""A worker ends if it receives no hints for 90 s although hints for it are in Redis."""

import pytest

from agents_app.events import relay
from agents_app.runners.base import RunControl
from agents_app.worker import ConsumerWatch
from agents_app.worker.consumer_watch import EXIT_STUCK
from agents_app.worker.execute import Host
from tests.agents_app.fleet import NOON, Fleet, at
from tests.parts.redis_part import RedisServer

CONCURRENCY = 2


class Watched:
    """A worker that is checked every ten seconds of its clock."""

    def __init__(self, fleet: Fleet, started_at: float = 0.0) -> None:
        self.seconds = started_at
        self.ended_with: list[int] = []
        self.host = Host(fleet.worker().pk, lambda: at(self.seconds))
        self.watch = ConsumerWatch(
            self.host, CONCURRENCY, lambda: self.seconds, self.ended_with.append
        )

    def pass_time(self, seconds: float) -> list[int]:
        until = self.seconds + seconds
        while self.seconds < until and not self.ended_with:
            self.seconds += 10
            self.watch.check()
        return self.ended_with


@pytest.fixture
def watched(durable_fleet: Fleet, broker: RedisServer) -> Watched:
    """A hint is in Redis from noon on, and no consumer takes it."""
    durable_fleet.enqueue(durable_fleet.agent(), NOON)
    assert relay.drain(5)
    return Watched(durable_fleet)


@pytest.mark.fault("F11")
def test_a_worker_that_receives_no_hint_for_90_seconds_ends(watched: Watched):
    """Guard: without the watch a worker whose consumer is stuck renews its lease forever."""
    assert watched.pass_time(30 + 80) == []
    assert watched.pass_time(20) == [EXIT_STUCK]


def test_a_worker_that_receives_hints_goes_on(watched: Watched):
    for _ in range(5):
        assert watched.pass_time(80) == []
        watched.host.hints.received += 1


def test_a_worker_without_a_free_thread_goes_on(watched: Watched):
    watched.host.live.update({number: RunControl() for number in range(CONCURRENCY)})
    assert watched.pass_time(600) == []


def test_a_draining_worker_is_left_alone(watched: Watched):
    watched.host.draining.set()
    assert watched.pass_time(600) == []


def test_a_stuck_worker_lets_its_runs_finish_and_starts_no_other(watched: Watched):
    watched.host.live[1] = RunControl()
    assert watched.pass_time(300) == []
    assert watched.host.draining.is_set()
    watched.host.live.clear()
    assert watched.pass_time(10) == [EXIT_STUCK]


@pytest.mark.parametrize("state", ["empty", "down"])
def test_without_hints_in_redis_a_worker_goes_on(watched: Watched, broker: RedisServer, state: str):
    """A worker cannot receive hints that were lost or from a server that does not answer."""
    assert watched.pass_time(80) == []
    broker.kill() if state == "down" else broker.client().flushall()
    watched.seconds += 100  # one check only: each waits for the server
    assert watched.pass_time(10) == []
