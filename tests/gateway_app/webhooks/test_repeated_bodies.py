"""A captured delivery that is sent again with another id or event is a duplicate."""

import json
import random
import threading
from datetime import timedelta

import pytest
from django.db import connection

from agents_app.models import Delivery, Tenant, WorkItem
from agents_app.webhooks import deliveries
from tests.agents_app.fleet import Fleet
from tests.agents_app.webhooks.providers import signing
from tests.gateway_app.posting import (
    ISSUE,
    SECRET,
    Post,
    WebhookClient,
    WebhookResponse,
    signed,
    source,
    subscribe,
)

pytestmark = pytest.mark.django_db(transaction=True)
BODY = json.dumps(ISSUE).encode()
IDS = {
    "github": "x-github-delivery",
    "sentry": "request-id",
    "linear": "linear-delivery",
    "jira": "x-atlassian-webhook-identifier",
    "pagerduty": "x-webhook-id",
}
EVENTS = {
    "github": "x-github-event",
    "sentry": "sentry-hook-resource",
    "linear": "linear-event",
    "jira": "x-atlassian-webhook-flow",
    "pagerduty": "x-webhook-subscription",
}


@pytest.fixture
def fleet(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    return fleet


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.fault("F65")
def test_a_signed_body_with_a_new_id_or_event_is_a_duplicate(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.SECRET)
    source(fleet.tenant, kind, type=kind)
    client = WebhookClient()
    client.now = signing.NOW
    body = signing.body_of({"action": "create", "type": "Issue", "data": {"number": 1}})
    request = signing.signed(kind, body)

    def send(**headers: str) -> WebhookResponse:
        given = {IDS[kind]: "first", EVENTS[kind]: "issues", **headers}
        return client.one(Post(f"/webhooks/{kind}", body, {**request.headers, **given}))

    first = send()
    assert (first.status, first.content.get("duplicate")) == (200, None)
    for headers in ({IDS[kind]: "second"}, {IDS[kind]: "", EVENTS[kind]: "push"}):
        again = send(**headers)
        assert (again.status, again.content) == (200, {**first.content, "duplicate": True})
    assert Delivery.objects.count() == 1


def test_a_body_is_new_again_after_a_day(fleet: Fleet):
    subscribe(fleet.agent)
    client = WebhookClient()
    first = client.one(signed(BODY, 1)).content["delivery"]
    client.now += timedelta(hours=23, minutes=59)
    assert client.one(signed(BODY, 2)).content["delivery"] == first
    client.now += timedelta(minutes=2)
    second = client.one(signed(BODY, 3)).content
    assert second["delivery"] != first and "duplicate" not in second
    client.now += timedelta(hours=23)
    assert client.one(signed(BODY, 4)).content == {**second, "duplicate": True}
    assert WorkItem.objects.count() == Delivery.objects.count() == 2


def test_a_person_can_replay_the_delivery(fleet: Fleet):
    subscribe(fleet.agent)
    client = WebhookClient()
    client.one(signed(BODY, 1))
    assert client.one(signed(BODY, 2)).content["duplicate"]
    deliveries.replay(Delivery.objects.get(), "ann", client.now)
    assert WorkItem.objects.count() == 2


def test_the_same_body_of_another_source_is_another_delivery(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    source(fleet.tenant, "other", secret_refs=["env:OTHER_SECRET"])
    client = WebhookClient()
    client.one(signed(BODY, 1))
    assert "duplicate" not in client.one(signed(BODY, 2, secret="another secret")).content


def test_a_generic_sender_may_repeat_a_body_with_another_id(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """A body such as {"event": "deployed"} says nothing about when it happened."""
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.SECRET)
    source(fleet.tenant, "any", type="generic")
    request = signing.signed("generic", b'{"event": "deployed"}')
    headers = [{**request.headers, "x-delivery-id": each} for each in ("a", "b")]
    posts = [Post("/webhooks/generic", request.body, each) for each in headers]
    assert ["duplicate" in answer.content for answer in WebhookClient().post(*posts)] == [False] * 2


def test_of_fifty_equal_bodies_with_their_own_ids_one_is_new(fleet: Fleet):
    subscribe(fleet.agent)
    answers = WebhookClient().post(*[signed(BODY, number) for number in range(50)])
    assert {answer.status for answer in answers} == {200}
    assert sum("duplicate" not in answer.content for answer in answers) == 1
    assert len({answer.content["delivery"] for answer in answers}) == 1
    assert WorkItem.objects.count() == 1


def test_several_gateways_store_each_body_once(fleet: Fleet):
    """Guard: the unique index; each gateway receives the bodies in another order."""
    subscribe(fleet.agent)
    bodies = [json.dumps({**ISSUE, "sent": number}).encode() for number in range(30)]
    answers: list[WebhookResponse] = []
    begin = threading.Barrier(4)

    def receive(gateway: int) -> None:
        order = random.Random(gateway).sample(bodies, len(bodies))
        posts = [signed(body, f"{gateway}-{number}") for number, body in enumerate(order)]
        begin.wait(10)
        try:
            answers.extend(WebhookClient().post(*posts))
        finally:
            connection.close()

    threads = [threading.Thread(target=receive, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 120
    assert sum("duplicate" not in answer.content for answer in answers) == 30
    assert Delivery.objects.count() == WorkItem.objects.count() == 30
