"""The rate limit of each caller, and the response with the time of the next try."""

import pytest

from agents_app.errors import ConfigError
from gateway_app.access import rate_limits
from gateway_app.access.rate_limits import RateLimit, read_rate_limit
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of


def test_a_burst_is_used_at_once_and_refills_with_time():
    limit = RateLimit(rate=2, burst=3)
    assert [limit.wait_seconds("a", 0) for _ in range(4)] == [0, 0, 0, 1]
    assert [limit.wait_seconds("a", 1) for _ in range(3)] == [0, 0, 1]


def test_unused_requests_add_up_to_the_burst_at_most():
    limit = RateLimit(rate=2, burst=3)
    limit.wait_seconds("a", 0)
    assert [limit.wait_seconds("a", 1000) for _ in range(4)] == [0, 0, 0, 1]


def test_each_caller_has_its_own_limit():
    limit = RateLimit(rate=1, burst=1)
    assert [limit.wait_seconds(who, 0) for who in ("a", "a", "b")] == [0, 1, 0]


def test_the_wait_of_a_slow_rate_is_exact():
    limit = RateLimit(rate=0.1, burst=1)
    limit.wait_seconds("a", 0)
    wait = limit.wait_seconds("a", 0)
    assert wait == 10
    assert limit.wait_seconds("a", wait) == 0


@pytest.mark.parametrize("seconds_between", [0, 1])
def test_there_are_never_more_buckets_than_the_limit(
    seconds_between: int, monkeypatch: pytest.MonkeyPatch
):
    """Guard: also if all callers are new and come at the same time."""
    monkeypatch.setattr(rate_limits, "MOST_BUCKETS", 10)
    limit = RateLimit(rate=1, burst=2)
    for number in range(1000):
        limit.wait_seconds(f"caller {number}", number * seconds_between)
        limit.peek_seconds(f"address {number}", number * seconds_between)
    assert len(limit._buckets) == 10


def test_a_caller_that_is_limited_is_not_forgotten_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    """Guard: the buckets that were not used for the longest time are removed first."""
    monkeypatch.setattr(rate_limits, "MOST_BUCKETS", 10)
    limit = RateLimit(rate=0.001, burst=1)
    limit.wait_seconds("mallory", 0)
    for number in range(100):
        limit.wait_seconds(f"caller {number}", 1)
        assert limit.wait_seconds("mallory", 1) > 0


@pytest.mark.parametrize("text", ["0", "-1", "many", "nan", "inf", "\N{SUPERSCRIPT TWO}"])
def test_an_invalid_rate_is_refused_at_the_start(text: str):
    with pytest.raises(ConfigError, match="DROVER_API_RATE"):
        read_rate_limit({"DROVER_API_RATE": text})


def test_rate_and_burst_come_from_the_environment():
    limit = read_rate_limit({"DROVER_API_RATE": "5", "DROVER_API_BURST": "7"})
    assert (limit.rate, limit.burst) == (5, 7)
    assert read_rate_limit({}).rate == rate_limits.DEFAULT_RATE


def test_too_many_requests_are_a_429_with_a_retry_after(
    fleet: Fleet, reader: Api, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rate_limits, "LIMIT", RateLimit(rate=0.1, burst=2))
    assert [reader.get("/agents").status for _ in range(2)] == [200, 200]
    reply = reader.get("/agents")
    assert (reply.status, reply.error["code"]) == (429, "rate_limited")
    assert 1 <= int(reply.response["Retry-After"]) <= 10
    assert api_of(fleet.tenant, "read", "another").get("/agents").status == 200
