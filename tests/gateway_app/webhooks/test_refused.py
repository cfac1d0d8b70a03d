"""Refused requests: no answer tells an unauthenticated client which sources exist.

The cause of each refusal is shown under Deliveries.
"""

import json
import time
from collections.abc import Collection

import pytest
from django.db import IntegrityError, OperationalError

from agents_app.errors import Refused
from agents_app.models import Delivery, Tenant, WebhookSource, WorkItem
from agents_app.webhooks import deliveries, sources
from agents_app.webhooks.providers import PROVIDERS
from agents_app.webhooks.refused import MOST_PER_SOURCE
from gateway_app.access.rate_limits import RateLimit
from gateway_app.webhooks.intake import MOST_TRACES_OF_SOURCE
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call
from tests.agents_app.webhooks.providers import signing
from tests.gateway_app.api.calling import Api, token_of
from tests.gateway_app.posting import ISSUE, SECRET, Post, WebhookClient, signed, source, subscribe

pytestmark = pytest.mark.django_db(transaction=True)
UNSIGNED = json.dumps(ISSUE).encode()


@pytest.fixture(autouse=True)
def fleet(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    return fleet


def forged(number: object = 1, address: str = "203.0.113.5", **headers: str) -> Post:
    post = signed(ISSUE, number, secret="wrong wrong")
    return Post(body=post.body, headers={**post.headers, **headers}, address=address)


# --- which sources exist --------------------------------------------------------------------

UNKNOWN = (
    *("/webhooks/nope", "/webhooks/nope/gh", "/webhooks/github/nope", "/webhooks/slack"),
    *("/webhooks/slack/gh", "/webhooks/github/nope/secret", "/webhooks/test", "/webhooks/discord"),
)


@pytest.mark.parametrize("path", UNKNOWN)
@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_a_missing_source_is_answered_like_one_with_another_secret(path: str, method: str):
    post = forged()
    known, unknown = (
        WebhookClient().one(Post(each, post.body, post.headers, method))
        for each in ("/webhooks/github/gh", path)
    )
    assert unknown == known
    assert unknown.status == (401 if method == "POST" else 405)


@pytest.mark.parametrize("column", ["disabled_at", "removed_at"])
def test_a_disabled_source_is_answered_like_one_with_another_secret(column: str):
    known = WebhookClient().one(forged())
    WebhookSource.objects.update(**{column: WebhookClient().now})
    assert WebhookClient().one(signed(ISSUE)) == known


def test_a_source_of_a_disabled_tenant_is_answered_like_one_with_another_secret():
    known = WebhookClient().one(forged())
    Tenant.objects.update(disabled_at=WebhookClient().now)
    assert WebhookClient().one(signed(ISSUE)) == known


@pytest.mark.parametrize(
    "path", ["/webhooks/", "/webhooks/github//", "/webhooks/github/a/b/c", "/webhooks/\0"]
)
def test_a_path_that_no_source_can_have_is_not_found(path: str):
    assert WebhookClient().one(Post(path, b"{}")).status == 404


def test_a_limit_of_the_body_does_not_tell_either():
    large = b"x" * (6 * 2**20)
    for path in ("/webhooks/github/gh", "/webhooks/github/nope"):
        assert WebhookClient().one(Post(path, large)).status == 401


def seconds_of(path: str) -> float:
    """The CPU time of the quickest of five refusals of a body of 8 MB: other processes and the
    garbage collector only add to it."""
    client, body, found = WebhookClient(), b"x" * (8 * 2**20), []
    for _ in range(5):
        began = time.process_time()
        assert client.one(Post(path, body)).status == 401
        found.append(time.process_time() - began)
    return min(found)


def test_a_missing_source_takes_as_long_as_an_existing_one(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """Guard: as many signatures are computed. One of 8 MB takes longer than all the rest."""
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    refs = ["env:TEST_HOOK_SECRET", "env:OTHER_SECRET"]
    source(fleet.tenant, "two", secret_refs=refs)
    one, two, none = (seconds_of(f"/webhooks/github/{name}") for name in ("gh", "two", "nope"))
    assert 0.75 < none / two < 1.33
    assert 0.75 < one / two < 1.33


# --- a trace for people ---------------------------------------------------------------------


@pytest.mark.fault("F64")
def test_a_wrong_signature_is_found_among_the_deliveries(fleet: Fleet):
    client = WebhookClient()
    assert client.one(forged(7, authorization="Bearer abcdef")).status == 401
    client.app.intake._count()
    (listed,) = call("deliveries", "list", "--outcome", "refused", "--json").json["deliveries"]
    shown = Api(token_of(fleet.tenant, "read")).get(f"/deliveries/{listed['id']}").json
    assert (shown["outcome"], shown["source"], shown["delivery_id"]) == ("refused", "gh", "guid-7")
    assert "the signature is missing or wrong" in shown["reason"]
    assert shown["reason"].endswith(f"({len(forged(7).body)} bytes from 203.0.113.5)")
    assert shown["headers"]["x-github-event"] == "issues"
    row = Delivery.objects.get()
    assert (bytes(row.body), row.matched, WorkItem.objects.count()) == (b"", 0, 0)
    assert "abcdef" not in row.headers


def test_an_id_of_a_refused_request_remains_free():
    client = WebhookClient()
    client.one(forged(1))
    client.app.intake._count()
    assert "duplicate" not in client.one(signed(ISSUE, 1)).content


def test_equal_refused_requests_are_one_row_with_their_number():
    client = WebhookClient()
    client.post(*[forged(number) for number in range(30)], forged(1, "198.51.100.9"))
    client.app.intake._count()
    reasons = list(Delivery.objects.order_by("pk").values_list("reason", flat=True))
    assert [reason.rpartition("(")[2] for reason in reasons] == [
        "30 requests from 203.0.113.5)",
        f"{len(forged(1).body)} bytes from 198.51.100.9)",
    ]
    assert WebhookSource.objects.get().refused_count == 31


def test_the_rows_of_refused_requests_are_few_and_the_latest():
    client = WebhookClient()
    kept = client.one(signed(ISSUE)).content["delivery"]
    for batch in range(4):
        posts = [forged(number, f"2001:db8:{batch}:{number:x}::1") for number in range(100)]
        client.post(*posts)
        client.app.intake._count()
    rows = Delivery.objects.filter(outcome="refused")
    assert rows.count() == MOST_PER_SOURCE
    assert rows.filter(reason__contains="from 2001:db8:3:").count() == MOST_TRACES_OF_SOURCE
    assert not rows.filter(reason__contains="from 2001:db8:0:").exists()
    assert Delivery.objects.filter(pk=kept).exists()
    assert WebhookSource.objects.get().refused_count == 400


def test_long_headers_of_a_refused_request_are_cut():
    client = WebhookClient()
    client.one(forged(**{f"x-{number}": "y" * 5000 for number in range(60)}))
    client.app.intake._count()
    assert len(Delivery.objects.get().headers) < 6000


def test_requests_of_missing_sources_store_nothing():
    client = WebhookClient()
    client.one(Post("/webhooks/github/nope", b"{}"))
    client.one(Post(f"/webhooks/{'n' * 1000}", b"{}"))
    client.app.intake._count()
    assert not Delivery.objects.exists()
    assert client.app.intake.refused == {
        ("github", "bad_signature"): 1,
        ("unknown", "bad_signature"): 1,
    }


def test_refusals_of_a_deleted_source_do_not_keep_out_those_of_others(fleet: Fleet):
    gone = source(fleet.tenant, "gone")
    client = WebhookClient()
    client.one(Post("/webhooks/github/gone", forged().body, forged().headers))
    client.one(Post("/webhooks/github/gh", forged().body, forged().headers))
    gone.delete()
    client.app.intake._count()
    assert [row.source.name for row in Delivery.objects.all()] == ["gh"]
    assert WebhookSource.objects.get().refused_count == 1


@pytest.mark.parametrize(("error", "kept"), [(IntegrityError, 0), (OperationalError, 1)])
def test_traces_are_kept_only_while_the_database_is_unavailable(
    error: type[Exception], kept: int, monkeypatch: pytest.MonkeyPatch
):
    def fail(requests: Collection[object]) -> None:
        if requests:
            raise error("cannot store")

    monkeypatch.setattr(sources, "store_refused", fail)
    client = WebhookClient()
    client.one(forged())
    client.app.intake._count()
    client.app.intake.stop()
    assert len(client.app.intake._traces) == kept
    assert WebhookSource.objects.get().refused_count == 1 - kept


def test_a_refused_request_cannot_be_replayed(fleet: Fleet):
    client = WebhookClient()
    client.one(forged())
    client.app.intake._count()
    delivery = Delivery.objects.get()
    with pytest.raises(Refused, match="was refused, and its body was not stored"):
        deliveries.replay(delivery, "ann", client.now)
    operator = Api(token_of(fleet.tenant, "operate"))
    assert operator.post(f"/deliveries/{delivery.pk}/replay").status == 409
    since = call("deliveries", "replay", "--since", "2020-01-01 00:00")
    assert "no matching delivery" in since.err


# --- rate limit per source ------------------------------------------------------------------


def generic(number: int) -> Post:
    body = json.dumps({"event": "done", "number": number}).encode()
    request = signing.plain("generic", body, SECRET)
    return Post("/webhooks/generic", body, {**request.headers, "x-delivery-id": str(number)})


def test_a_source_with_too_many_signed_deliveries_gets_429(fleet: Fleet):
    """Guard: counted after the signature, so forged requests use up nothing."""
    source(fleet.tenant, "any", type="generic")
    source(fleet.tenant, "other", type="generic", secret_refs=["env:OTHER_SECRET"])
    client = WebhookClient()
    client.app.limit = RateLimit(rate=0.01, burst=3)
    assert client.one(Post("/webhooks/generic/any", b"{}")).status == 401
    answers = [client.one(generic(number)) for number in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].content["error"]["code"] == "rate_limited"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert Delivery.objects.count() == 3


def test_signed_deliveries_of_github_have_no_limit(fleet: Fleet):
    """GitHub does not send a refused delivery again."""
    source(fleet.tenant, "open", secret_refs=[], allow_unsigned=True)
    client = WebhookClient()
    client.app.limit = RateLimit(rate=0.01, burst=1)
    answers = client.post(*[signed(ISSUE, number) for number in range(5)])
    assert {answer.status for answer in answers} == {200}
    posts = [Post("/webhooks/github/open", UNSIGNED[:-1] + b" " * n + b"}") for n in range(3)]
    assert [client.one(post).status for post in posts] == [200, 429, 429]


def test_the_providers_that_do_not_send_again_are_known():
    found = {name for name, provider in PROVIDERS.items() if not provider.sends_again}
    assert found == {"discord", "github", "gitlab"}


# --- unsigned requests ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["github", "test"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "127.0.0.1:8080"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8080", "origin": "http://[::1]:8080"}, 200),
        ({"host": "localhost:8080", "origin": "http://localhost:8080"}, 200),
        ({"host": "rebound.example"}, 403),
        ({"host": "rebound.example:8080", "origin": "http://rebound.example:8080"}, 403),
        ({"host": "localhost:8080", "origin": "https://evil.example"}, 403),
        ({"host": "localhost:8080", "origin": "http://localhost:9000"}, 403),
        ({"host": "localhost:8080", "origin": "null"}, 403),
        ({"host": "localhost:8080", "origin": ""}, 403),
        ({"origin": "http://[broken"}, 403),
    ],
)
def test_an_unsigned_request_of_another_site_is_refused(
    fleet: Fleet, kind: str, headers: dict[str, str], status: int
):
    """Guard: any web page can make a browser post to this machine, also under another name."""
    subscribe(fleet.agent, source="open")
    source(fleet.tenant, "open", type=kind, secret_refs=[], allow_unsigned=True)
    client = WebhookClient()
    answer = client.one(Post(f"/webhooks/{kind}/open", UNSIGNED, headers))
    assert answer.status == status
    assert Delivery.objects.count() == (status == 200)
    if status == 403:
        assert answer.content["error"]["code"] == "foreign_origin"
        assert client.app.intake.refused == {(kind, "foreign_origin"): 1}


def test_a_secret_does_not_make_a_source_of_the_provider_test_signed(fleet: Fleet):
    """Guard: the provider accepts every request, so other sites must be refused all the same."""
    source(fleet.tenant, "trial", type="test", allow_unsigned=True)
    headers = {"host": "localhost:8080", "origin": "https://evil.example"}
    assert WebhookClient().one(Post("/webhooks/test/trial", UNSIGNED, headers)).status == 403
    assert WebhookClient().one(Post("/webhooks/test/trial", UNSIGNED)).status == 200


def test_a_signed_delivery_may_have_any_host_and_origin():
    post = signed(ISSUE)
    headers = {**post.headers, "host": "hooks.example", "origin": "https://github.com"}
    assert WebhookClient().one(Post(body=post.body, headers=headers)).status == 200


def test_a_large_unsigned_body_is_refused(fleet: Fleet):
    source(fleet.tenant, "open", secret_refs=[], allow_unsigned=True)
    client = WebhookClient()
    assert client.one(Post("/webhooks/github/open", b"x" * (2**20 + 1))).status == 413
    assert client.one(Post("/webhooks/github/gh", b"x" * (2**20 + 1))).status == 401


def test_a_large_unsigned_body_is_refused_beside_a_source_with_a_secret(fleet: Fleet):
    source(fleet.tenant, "open", secret_refs=[], allow_unsigned=True)
    large = UNSIGNED[:-1] + b" " * 2**20 + b"}"
    answer = WebhookClient().one(Post("/webhooks/github", large))
    assert (answer.status, answer.content["error"]["code"]) == (413, "too_large")
    assert WebhookClient().one(Post("/webhooks/github", UNSIGNED)).status == 200
