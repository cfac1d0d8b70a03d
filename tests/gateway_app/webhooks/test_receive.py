"""What a sender of webhooks is told, and what is on disk by then."""

import base64
import hmac
import json
from datetime import timedelta

import pytest

from agents_app.models import Delivery, Run, Tenant, WebhookSource, WorkItem
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, SECRET, Door, Post, listens, signed, source

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _secret_in_the_environment(monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)


@pytest.fixture
def fleet(transactional_db) -> Fleet:
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    return fleet


def test_a_signed_delivery_is_stored_raw_and_becomes_work(fleet):
    agent = listens(fleet.agent, events=["issues"])
    listens(fleet.agent, "others", events=["push"])
    post = signed(ISSUE)
    answer = Door().one(post)
    delivery = Delivery.objects.get()
    assert answer.status == 200
    assert answer.content == {"ok": True, "delivery": delivery.pk, "matched": 1, "skipped": 1}
    assert bytes(delivery.body) == post.body
    assert (delivery.delivery_id, delivery.event, delivery.action) == ("guid-1", "issues", "opened")
    item = WorkItem.objects.get()
    assert (item.agent, item.trigger) == (agent, "webhook")
    assert item.idempotency_key == f"delivery:{delivery.pk}:triage"
    told = json.loads(item.context)
    assert (told["title"], told["repo"], told["delivery"]) == ("It broke", "acme/site", "guid-1")


def test_a_free_slot_is_taken_in_the_same_commit(fleet):
    listens(fleet.agent)
    Door().one(signed(ISSUE))
    assert Run.objects.get().state == "pending"


def test_each_agent_has_its_reason(fleet):
    listens(fleet.agent, "a", events=["issues"], repos=["acme/app"])
    listens(fleet.agent, "b", not_sender=["ann"])
    listens(fleet.agent, "c", scale=0)
    Door().one(signed(ISSUE))
    delivery = Delivery.objects.get()
    reasons = {d["agent"]: d["reason"] for d in json.loads(delivery.decisions)}
    assert reasons["a"] == "repos: wanted acme/app, got acme/site"
    assert "not ann" in reasons["b"]
    assert reasons["c"] == "disabled"
    assert (delivery.outcome, delivery.matched, delivery.skipped) == ("unmatched", 0, 3)


def test_a_delivery_for_nobody_says_so(fleet):
    assert Door().one(signed(ISSUE)).content["matched"] == 0
    assert Delivery.objects.get().reason == "no agent listens"


@pytest.mark.fault("F65")
def test_the_same_delivery_again_is_told_to_be_a_duplicate_and_makes_no_second_work(fleet):
    listens(fleet.agent)
    door = Door()
    first = door.one(signed(ISSUE))
    second = door.one(signed(ISSUE))
    assert second.status == 200
    assert second.content == {**first.content, "duplicate": True}
    assert WorkItem.objects.count() == Delivery.objects.count() == 1


def test_of_fifty_equal_ones_at_the_same_time_one_is_new(fleet):
    listens(fleet.agent)
    answers = Door().post(*[signed(ISSUE)] * 50)
    assert {answer.status for answer in answers} == {200}
    assert sum("duplicate" not in answer.content for answer in answers) == 1
    assert WorkItem.objects.count() == 1


def test_many_at_once_all_become_work_of_their_own(fleet):
    listens(fleet.agent, scale=3)
    answers = Door().post(*[signed(ISSUE, number) for number in range(90)])
    numbers = {answer.content["delivery"] for answer in answers}
    assert len(numbers) == Delivery.objects.count() == WorkItem.objects.count() == 90
    assert Run.objects.filter(state="pending").count() == 3


@pytest.mark.fault("F60")
def test_more_than_the_queue_holds_drops_the_oldest_visibly(fleet):
    agent = listens(fleet.agent)
    type(agent).objects.update(work_queue_size=5)
    Door().post(*[signed(ISSUE, number) for number in range(20)])
    dropped = WorkItem.objects.filter(state="dropped")
    assert Delivery.objects.count() == 20
    assert dropped.count() == 14
    assert all(item.reason.startswith("overflow") for item in dropped)


@pytest.mark.parametrize("given", ["", "sha256=", "sha256=" + "0" * 64, "nonsense", "sha256=é"])
@pytest.mark.fault("F64")
def test_without_a_good_signature_nothing_is_stored_but_a_count(fleet, given):
    post = signed(ISSUE)
    door = Door()
    answer = door.one(Post(body=post.body, headers={**post.headers, "x-hub-signature-256": given}))
    assert (answer.status, answer.content["error"]["code"]) == (401, "bad_signature")
    assert not Delivery.objects.exists()
    assert door.app.intake.refused == {("github", "bad_signature"): 1}
    door.app.intake._count()
    assert WebhookSource.objects.get().refused_count == 1


def test_a_delivery_that_follows_a_forged_one_of_the_same_id_is_not_lost(fleet):
    door = Door()
    assert door.one(signed(ISSUE, secret="wrong wrong")).status == 401
    assert "duplicate" not in door.one(signed(ISSUE)).content


@pytest.mark.parametrize(
    "path",
    [
        *("/webhooks/nope", "/webhooks/nope/gh", "/webhooks/github/nope", "/webhooks/slack"),
        *("/webhooks/slack/gh", "/webhooks/", "/webhooks/github//", "/webhooks/github/a/b/c"),
    ],
)
def test_what_is_not_there_looks_all_the_same(fleet, path):
    post = signed(ISSUE)
    unknown = Door().one(Post(path=path, body=post.body, headers=post.headers))
    assert unknown.status == 404
    assert unknown.content == Door().one(Post(path="/webhooks/no-such")).content


def test_the_sources_of_a_disabled_tenant_are_not_there(fleet):
    Tenant.objects.update(disabled_at=Door().now)
    assert Door().one(signed(ISSUE)).status == 404


def test_a_source_that_is_switched_off_is_not_there(fleet):
    WebhookSource.objects.update(disabled_at=Door().now)
    assert Door().one(signed(ISSUE)).status == 404


def test_the_signature_decides_which_of_several_sources_sent_it(fleet, monkeypatch):
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    other = source(fleet.tenant, "other", secret_refs=["env:OTHER_SECRET"])
    heard = listens(fleet.agent, source="other")
    listens(fleet.agent, "deaf")
    assert Door().one(signed(ISSUE, secret="another secret")).content["matched"] == 1
    assert Delivery.objects.get().source == other
    assert WorkItem.objects.get().agent == heard


def test_an_address_with_a_source_takes_only_that_ones_signature(fleet, monkeypatch):
    monkeypatch.setenv("OTHER_SECRET", "another secret")
    source(fleet.tenant, "other", secret_refs=["env:OTHER_SECRET"])
    post = signed(ISSUE)
    door = Door()
    assert door.one(Post("/webhooks/github/gh", post.body, post.headers)).status == 200
    assert door.one(Post("/webhooks/github/other", post.body, post.headers)).status == 401


def test_anything_but_post_is_refused_and_told_so(fleet):
    answer = Door().one(Post(method="GET"))
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_a_provider_that_asks_whose_address_it_is_gets_its_token_back_signed(fleet):
    source(fleet.tenant, "x", type="twitter")
    door = Door()
    answer = door.one(Post("/webhooks/twitter", method="GET", query=b"crc_token=abc%2B&nonce=1"))
    mac = base64.b64encode(hmac.digest(SECRET.encode(), b"abc+", "sha256")).decode()
    assert (answer.status, answer.content) == (200, {"response_token": f"sha256={mac}"})
    for query in (b"", b"crc_token=", b"crc_token=%7B%7D", b"crc_token=" + b"a" * 5000):
        assert door.one(Post("/webhooks/twitter", method="GET", query=query)).status == 405
    assert door.one(Post(method="GET", query=b"crc_token=abc")).status == 405
    source(fleet.tenant, "y", type="twitter")
    both = Door()
    asked = {"method": "GET", "query": b"crc_token=abc"}
    assert both.one(Post("/webhooks/twitter", **asked)).status == 405
    assert both.one(Post("/webhooks/twitter/y", **asked)).status == 200
    assert Delivery.objects.count() == 0


def test_a_body_is_its_own_id_for_a_few_minutes_only(fleet):
    listens(fleet.agent)
    door = Door()
    post = signed(ISSUE)
    headers = {n: v for n, v in post.headers.items() if n != "x-github-delivery"}
    unnumbered = Post(body=post.body, headers=headers)
    assert "duplicate" not in door.one(unnumbered).content
    door.now += timedelta(seconds=299)
    assert door.one(unnumbered).content["duplicate"]
    door.now += timedelta(seconds=2)
    assert "duplicate" not in door.one(unnumbered).content
    assert WorkItem.objects.count() == Delivery.objects.count() == 2


def test_a_numbered_delivery_stays_a_duplicate_for_good(fleet):
    door = Door()
    door.one(signed(ISSUE))
    door.now += timedelta(days=3)
    assert door.one(signed(ISSUE)).content["duplicate"]
