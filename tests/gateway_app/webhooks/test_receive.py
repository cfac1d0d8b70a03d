"""The responses to webhook requests, and the rows that are stored before the response."""

import base64
import hmac
import json
from datetime import timedelta

import pytest

from agents_app.models import Delivery, Run, RunEvent, Tenant, WebhookSource, WorkItem
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, SECRET, Post, WebhookClient, signed, source, subscribe

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _secret_in_the_environment(monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)


@pytest.fixture
def fleet(transactional_db) -> Fleet:
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    return fleet


def test_a_signed_delivery_is_stored_unchanged_and_queues_work(fleet):
    agent = subscribe(fleet.agent, events=["issues"])
    subscribe(fleet.agent, "others", events=["push"])
    post = signed(ISSUE)
    answer = WebhookClient().one(post)
    delivery = Delivery.objects.get()
    assert answer.status == 200
    assert answer.content == {"ok": True, "delivery": delivery.pk, "matched": 1, "skipped": 1}
    assert bytes(delivery.body) == post.body
    assert (delivery.delivery_id, delivery.event, delivery.action) == ("guid-1", "issues", "opened")
    item = WorkItem.objects.get()
    assert (item.agent, item.trigger) == (agent, "webhook")
    assert item.idempotency_key == f"delivery:{delivery.pk}:triage"
    context = json.loads(item.context)
    assert (context["title"], context["repo"], context["delivery"]) == (
        "It broke",
        "acme/site",
        "guid-1",
    )


def test_a_free_slot_is_taken_in_the_same_commit(fleet):
    subscribe(fleet.agent)
    WebhookClient().one(signed(ISSUE))
    assert Run.objects.get().state == "pending"


def test_the_decision_for_each_agent_has_its_reason(fleet):
    subscribe(fleet.agent, "a", events=["issues"], repos=["acme/app"])
    subscribe(fleet.agent, "b", not_sender=["ann"])
    subscribe(fleet.agent, "c", scale=0)
    WebhookClient().one(signed(ISSUE))
    delivery = Delivery.objects.get()
    reasons = {d["agent"]: d["reason"] for d in json.loads(delivery.decisions)}
    assert reasons["a"] == "repos: wanted acme/app, got acme/site"
    assert "not ann" in reasons["b"]
    assert reasons["c"] == "disabled"
    assert (delivery.outcome, delivery.matched, delivery.skipped) == ("unmatched", 0, 3)


def test_a_delivery_without_subscribed_agents_is_unmatched(fleet):
    assert WebhookClient().one(signed(ISSUE)).content["matched"] == 0
    assert Delivery.objects.get().reason == "no agent subscribes to this source"


@pytest.mark.fault("F65")
def test_a_repeated_delivery_is_a_duplicate_without_new_work(fleet):
    subscribe(fleet.agent)
    client = WebhookClient()
    first = client.one(signed(ISSUE))
    second = client.one(signed(ISSUE))
    assert second.status == 200
    assert second.content == {**first.content, "duplicate": True}
    assert WorkItem.objects.count() == Delivery.objects.count() == 1


def test_of_fifty_equal_deliveries_at_the_same_time_one_is_new(fleet):
    subscribe(fleet.agent)
    answers = WebhookClient().post(*[signed(ISSUE)] * 50)
    assert {answer.status for answer in answers} == {200}
    assert sum("duplicate" not in answer.content for answer in answers) == 1
    assert WorkItem.objects.count() == 1


def test_many_deliveries_at_once_each_queue_their_work(fleet):
    subscribe(fleet.agent, scale=3)
    answers = WebhookClient().post(*[signed(ISSUE, number) for number in range(90)])
    numbers = {answer.content["delivery"] for answer in answers}
    assert len(numbers) == Delivery.objects.count() == WorkItem.objects.count() == 90
    assert Run.objects.filter(state="pending").count() == 3


@pytest.mark.fault("F60")
def test_deliveries_beyond_the_queue_size_drop_the_oldest_work(fleet):
    agent = subscribe(fleet.agent)
    type(agent).objects.update(work_queue_size=5)
    WebhookClient().post(*[signed(ISSUE, number) for number in range(20)])
    dropped = WorkItem.objects.filter(state="dropped")
    assert Delivery.objects.count() == 20
    assert dropped.count() == 14
    assert all(item.reason.startswith("overflow") for item in dropped)
    oldest = WorkItem.objects.order_by("pk").exclude(state="admitted")[:14]
    assert {item.pk for item in dropped} == {item.pk for item in oldest}
    assert RunEvent.objects.filter(name="work.overflowed").count() == 14


@pytest.mark.parametrize("given", ["", "sha256=", "sha256=" + "0" * 64, "nonsense", "sha256=é"])
@pytest.mark.fault("F64")
def test_a_delivery_with_a_wrong_signature_is_refused_and_counted(fleet, given):
    post = signed(ISSUE)
    client = WebhookClient()
    answer = client.one(
        Post(body=post.body, headers={**post.headers, "x-hub-signature-256": given})
    )
    assert (answer.status, answer.content["error"]["code"]) == (401, "bad_signature")
    assert not Delivery.objects.exists()
    assert client.app.intake.refused == {("github", "bad_signature"): 1}
    client.app.intake._count()
    assert WebhookSource.objects.get().refused_count == 1
    assert not WorkItem.objects.exists()


def test_a_delivery_that_follows_a_forged_one_of_the_same_id_is_not_lost(fleet):
    client = WebhookClient()
    assert client.one(signed(ISSUE, secret="wrong wrong")).status == 401
    assert "duplicate" not in client.one(signed(ISSUE)).content


def test_the_signature_selects_one_of_several_sources(fleet, monkeypatch):
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    other = source(fleet.tenant, "other", secret_refs=["env:OTHER_SECRET"])
    subscribed = subscribe(fleet.agent, source="other")
    subscribe(fleet.agent, "not-subscribed")
    assert WebhookClient().one(signed(ISSUE, secret="another secret")).content["matched"] == 1
    assert Delivery.objects.get().source == other
    assert WorkItem.objects.get().agent == subscribed


def test_the_address_of_a_source_accepts_only_the_signature_of_that_source(fleet, monkeypatch):
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    source(fleet.tenant, "other", secret_refs=["env:OTHER_SECRET"])
    post = signed(ISSUE)
    client = WebhookClient()
    assert client.one(Post("/webhooks/github/gh", post.body, post.headers)).status == 200
    assert client.one(Post("/webhooks/github/other", post.body, post.headers)).status == 401


def test_other_methods_than_post_are_a_405(fleet):
    answer = WebhookClient().one(Post(method="GET"))
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_the_token_of_a_provider_is_answered_with_its_signature(fleet):
    source(fleet.tenant, "x", type="twitter")
    client = WebhookClient()
    answer = client.one(Post("/webhooks/twitter", method="GET", query=b"crc_token=abc%2B&nonce=1"))
    mac = base64.b64encode(hmac.digest(SECRET.encode(), b"abc+", "sha256")).decode()
    assert (answer.status, answer.content) == (200, {"response_token": f"sha256={mac}"})
    for query in (b"", b"crc_token=", b"crc_token=%7B%7D", b"crc_token=" + b"a" * 5000):
        assert client.one(Post("/webhooks/twitter", method="GET", query=query)).status == 405
    assert client.one(Post(method="GET", query=b"crc_token=abc")).status == 405
    source(fleet.tenant, "y", type="twitter")
    both = WebhookClient()
    request = {"method": "GET", "query": b"crc_token=abc"}
    assert both.one(Post("/webhooks/twitter", **request)).status == 405
    assert both.one(Post("/webhooks/twitter/y", **request)).status == 200
    assert Delivery.objects.count() == 0


def test_the_hash_of_a_body_is_the_delivery_id_for_five_minutes(fleet):
    source(fleet.tenant, "any", type="generic")
    subscribe(fleet.agent, source="any")
    client = WebhookClient()
    body = b'{"event": "done"}'
    mac = hmac.digest(SECRET.encode(), body, "sha256").hex()
    unnumbered = Post("/webhooks/generic", body, {"x-signature": mac})
    assert "duplicate" not in client.one(unnumbered).content
    client.now += timedelta(seconds=299)
    assert client.one(unnumbered).content["duplicate"]
    client.now += timedelta(seconds=2)
    assert "duplicate" not in client.one(unnumbered).content
    assert WorkItem.objects.count() == Delivery.objects.count() == 2


def test_a_delivery_id_of_the_sender_never_expires(fleet):
    client = WebhookClient()
    client.one(signed(ISSUE))
    client.now += timedelta(days=3)
    assert client.one(signed(ISSUE)).content["duplicate"]
