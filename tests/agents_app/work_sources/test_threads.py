"""Each source has a thread of its own: a slow one delays no other, and none is served twice."""

import threading

import pytest

from agents_app.work_sources import threads
from agents_app.work_sources.threads import SourceThreads
from tests.parts.waiting import wait_for

SLOW, QUICK = 1, 2


@pytest.fixture
def held() -> threading.Event:
    return threading.Event()


def test_a_slow_source_delays_no_other_and_is_not_served_twice(held):
    served: list[int] = []

    def serve(source_id: int) -> None:
        if source_id == SLOW:
            held.wait(30)
        served.append(source_id)

    pool = SourceThreads(serve)
    assert pool.submit(SLOW)
    assert pool.submit(QUICK)
    wait_for(lambda: served == [QUICK], 10, "the quick source waits")
    assert not pool.submit(SLOW)
    held.set()
    wait_for(lambda: served == [QUICK, SLOW] and not pool.served, 10, "the slow source is stuck")
    assert pool.submit(SLOW)


def test_an_error_of_a_source_ends_only_its_thread():
    def fail(_source_id: int) -> None:
        raise RuntimeError("of the test")

    pool = SourceThreads(fail)
    assert pool.submit(SLOW)
    wait_for(lambda: not pool.served, 10, "the thread is stuck")


def test_there_is_a_limit_to_the_threads(held, monkeypatch):
    monkeypatch.setattr(threads, "MOST_THREADS", 2)
    pool = SourceThreads(lambda _source_id: held.wait(30) and None)
    assert [pool.submit(number) for number in range(3)] == [True, True, False]
    held.set()
    wait_for(lambda: not pool.served, 10, "a thread is stuck")
