"""After many wrong tokens of one network, its tokens are not looked up."""

import pytest

from agents_app.models import ApiToken
from gateway_app.access import rate_limits
from gateway_app.access.rate_limits import RateLimit
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "WRONG_TOKENS", RateLimit(rate=0.01, burst=5))


def guess_until_stopped() -> None:
    statuses = [Api(f"guess-{number}").get("/agents").status for number in range(6)]
    assert statuses == [401] * 5 + [429]


def test_after_many_wrong_tokens_no_token_is_looked_up(fleet: Fleet, django_assert_num_queries):
    guess_until_stopped()
    with django_assert_num_queries(0):
        reply = Api("another").get("/agents")
    assert (reply.status, reply.error["code"]) == (429, "rate_limited")
    assert int(reply.response["Retry-After"]) > 0


def test_after_many_wrong_tokens_a_valid_new_token_is_refused(fleet: Fleet):
    right = api_of(fleet.tenant)
    guess_until_stopped()
    assert right.get("/agents").status == 429


def test_a_token_that_was_valid_before_is_still_accepted(fleet: Fleet):
    right = api_of(fleet.tenant)
    assert right.get("/agents").status == 200
    guess_until_stopped()
    assert right.get("/agents").status == 200


def test_a_revoked_token_counts_as_a_wrong_token(fleet: Fleet):
    right = api_of(fleet.tenant)
    assert right.get("/agents").status == 200
    ApiToken.objects.update(revoked_at=fleet.tenant.created_at)
    assert [right.get("/agents").status for _ in range(7)] == [401] * 5 + [429] * 2


def test_wrong_tokens_are_counted_per_network(fleet: Fleet):
    guess_until_stopped()
    reply = Api("another").client.get(
        "/v1/agents", headers={"Authorization": "Bearer x"}, REMOTE_ADDR="198.51.100.9"
    )
    assert reply.status_code == 401


def test_requests_without_a_token_do_not_count_as_wrong_tokens(fleet: Fleet):
    assert {Api().get("/agents").status for _ in range(10)} == {401}
    assert api_of(fleet.tenant).get("/agents").status == 200
