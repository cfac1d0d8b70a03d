"""Wrong signatures are limited by address; those of several sources are verified on a thread."""

import json
import threading
from typing import Any

import pytest

from agents_app.models import Delivery, Tenant
from gateway_app.access.rate_limits import RateLimit
from gateway_app.webhooks import receive
from gateway_app.webhooks.examine import examine
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import (
    ISSUE,
    SECRET,
    Post,
    WebhookClient,
    WebhookResponse,
    signed,
    source,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fleet(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    source(fleet.tenant, "two", secret_refs=["env:OTHER_SECRET"])
    return fleet


def to(path: str, post: Post, address: str = "203.0.113.5") -> Post:
    return Post(path, post.body, post.headers, address=address)


def forged(path: str = "/webhooks/github", address: str = "203.0.113.5") -> Post:
    return to(path, signed(ISSUE, secret="wrong wrong"), address)


@pytest.fixture
def limited(fleet: Fleet) -> WebhookClient:
    client = WebhookClient()
    client.app.wrong_signatures = RateLimit(rate=0.01, burst=3)
    return client


def statuses(client: WebhookClient, *posts: Post) -> list[int]:
    return [client.one(post).status for post in posts]


@pytest.mark.parametrize(
    ("path", "thread"), [("/webhooks/github", "webhooks_0"), ("/webhooks/github/gh", "MainThread")]
)
def test_the_secrets_of_several_sources_are_tried_on_a_thread(
    path: str, thread: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """Guard: a request with the name of its source changes no thread, as before."""
    seen: list[str] = []

    def record(*arguments: Any) -> Any:
        seen.append(threading.current_thread().name)
        return examine(*arguments)

    monkeypatch.setattr(receive, "examine", record)
    assert WebhookClient().one(to(path, signed(ISSUE))).status == 200
    assert seen == [thread]


@pytest.mark.parametrize(
    "path", ["/webhooks/github", "/webhooks/github/gh", "/webhooks/github/nope", "/webhooks/nope"]
)
def test_wrong_signatures_are_limited_by_address(path: str, limited: WebhookClient):
    """Guard: the answers do not tell whether the source exists."""
    answers: list[WebhookResponse] = [limited.one(forged(path)) for _ in range(5)]
    assert [answer.status for answer in answers] == [401, 401, 401, 429, 429]
    assert answers[-1].content["error"]["code"] == "rate_limited"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert limited.one(forged(path, "198.51.100.7")).status == 401


def test_nothing_is_read_from_an_address_with_many_wrong_signatures(limited: WebhookClient):
    assert statuses(limited, *[forged()] * 3) == [401] * 3
    unread = Post("/webhooks/github", b"x", {}, hangs=True)
    assert limited.one(unread).status == 429
    assert limited.app.intake.refused["github", "rate_limited"] == 1


def test_a_request_with_the_name_of_its_source_is_always_verified(limited: WebhookClient):
    """Guard: a sender that shares its address with another client must lose no delivery."""
    assert statuses(limited, *[forged()] * 4) == [401, 401, 401, 429]
    assert limited.one(to("/webhooks/github/gh", signed(ISSUE))).status == 200
    assert Delivery.objects.count() == 1


def test_an_address_with_valid_signatures_is_still_verified(limited: WebhookClient):
    assert limited.one(signed(ISSUE, 1)).status == 200
    assert statuses(limited, *[forged()] * 4) == [401, 401, 401, 429]
    assert limited.one(signed(ISSUE, 2)).status == 200


def test_an_unsigned_request_does_not_lift_the_limit(fleet: Fleet, limited: WebhookClient):
    """Guard: any client can send one."""
    source(fleet.tenant, "open", type="generic", secret_refs=[], allow_unsigned=True)
    source(fleet.tenant, "closed", type="generic")
    unsigned = Post("/webhooks/generic", json.dumps({"event": "x"}).encode())
    assert limited.one(unsigned).status == 200
    assert statuses(limited, *[forged()] * 4) == [401, 401, 401, 429]
    assert limited.one(unsigned).status == 429
