"""Deliveries are stored with their work in one transaction, and can be replayed."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from agents_app.errors import Refused
from agents_app.launch.prompt import build_prompt
from agents_app.maintenance.retention import remove_old_rows
from agents_app.models import Agent, Delivery, RunEvent, Tenant, WebhookSource, WorkItem
from agents_app.webhooks import deliveries
from agents_app.webhooks.delivery_rows import Receipt
from agents_app.webhooks.providers import RawDelivery
from agents_app.webhooks.source_index import read_source_index
from tests.agents_app.fleet import NOON, Fleet, at, work_states

HEADERS = {"x-github-event": "issues"}
ISSUE = {
    "action": "opened",
    "issue": {"number": 7, "title": "It broke"},
    "repository": {"full_name": "acme/site"},
    "sender": {"login": "ann"},
}


@pytest.fixture(autouse=True)
def gh(fleet: Fleet) -> WebhookSource:
    return WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")


def subscribed_agent(fleet: Fleet, name: str = "triage", **filters: Any) -> Agent:
    return fleet.agent(name, webhooks=[{"source": "gh", "filters": filters}])


def receive(*ids: str, body: bytes = b"") -> list[Receipt]:
    """Without a body, the body contains the id: a repeated body is a duplicate."""
    index = read_source_index()
    (source,) = index.find("github")
    bodies = [body or json.dumps({**ISSUE, "sent": each}).encode() for each in ids]
    all_raw = [
        RawDelivery(HEADERS, body, each, NOON) for each, body in zip(ids, bodies, strict=True)
    ]
    accepted = [deliveries.match_delivery(index, source, raw, "main") for raw in all_raw]
    return deliveries.store(accepted, NOON)


def test_an_agent_gets_the_delivery_as_marked_context(fleet: Fleet):
    subscribed_agent(fleet)
    receive("a")
    item = WorkItem.objects.get()
    prompt = build_prompt("Triage it.", {}, item.trigger, item.prompt, item.context)
    assert prompt.startswith('Triage it.\n\n<context trigger="webhook">')
    assert '"title": "It broke"' in prompt


def test_a_delivery_whose_work_cannot_be_written_is_not_stored(fleet: Fleet, monkeypatch):
    subscribed_agent(fleet)
    monkeypatch.setattr(deliveries.dispatch, "enqueue_many_in_transaction", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        receive("a")
    assert not Delivery.objects.exists()


def test_the_same_id_twice_in_one_commit_is_stored_once(fleet: Fleet):
    subscribed_agent(fleet)
    first, second, third = receive("a", "b", "a")
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, False, True)
    assert first.delivery == third.delivery
    assert WorkItem.objects.count() == 2


def test_the_same_id_from_another_source_is_another_delivery(fleet: Fleet, gh: WebhookSource):
    receive("a")
    WebhookSource.objects.filter(pk=gh.pk).update(removed_at=NOON)
    WebhookSource.objects.create(tenant=fleet.tenant, name="gh2", type="github")
    assert not receive("a")[0].duplicate


def test_an_agent_disabled_after_the_index_was_read_does_not_match(fleet: Fleet):
    off, on = subscribed_agent(fleet, "off"), subscribed_agent(fleet, "on")
    index = read_source_index()
    Agent.objects.filter(pk=off.pk).update(scale=0)
    raw = RawDelivery(HEADERS, json.dumps(ISSUE).encode(), "a", NOON)
    accepted = deliveries.match_delivery(index, index.sources[0], raw, "main")
    (receipt,) = deliveries.store([accepted], NOON)
    assert (receipt.matched, receipt.skipped) == (1, 1)
    delivery = Delivery.objects.get()
    reasons = {d["agent"]: d["reason"] for d in json.loads(delivery.decisions)}
    assert reasons == {"off": "disabled", "on": ""}
    assert (delivery.outcome, work_states(on), work_states(off)) == ("matched", ["admitted"], [])


def test_the_work_of_a_paused_agent_is_queued(fleet: Fleet):
    agent = subscribed_agent(fleet)
    Agent.objects.filter(pk=agent.pk).update(paused_at=NOON)
    receive("a", "b")
    assert work_states(agent) == ["queued", "queued"]


def test_several_matching_triggers_of_an_agent_make_one_work_item(fleet: Fleet):
    triggers = [{"source": "gh", "filters": {"events": e}} for e in ("push", "issues", "issues")]
    fleet.agent("many", webhooks=triggers)
    assert receive("a")[0].matched == 1
    assert WorkItem.objects.count() == 1


def test_an_unknown_filter_matches_no_delivery(fleet: Fleet):
    subscribed_agent(fleet, evnts=["issues"])
    assert receive("a")[0].matched == 0
    (decision,) = json.loads(Delivery.objects.get().decisions)
    assert decision["reason"] == "unknown filter 'evnts'; did you mean 'events'?"


def test_agents_of_another_tenant_do_not_match(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other"))
    subscribed_agent(other)
    assert receive("a")[0] == Receipt(Delivery.objects.get().pk, 0, 0)


# --- replaying ------------------------------------------------------------------------------


def test_a_replay_adds_work_with_its_number_to_the_same_delivery(fleet: Fleet):
    agent = subscribed_agent(fleet)
    receive("a")
    delivery = Delivery.objects.get()
    for number in (1, 2):
        receipt = deliveries.replay(delivery, "ann", at(number))
        assert receipt == Receipt(delivery.pk, 1, 0)
    delivery.refresh_from_db()
    assert (Delivery.objects.count(), delivery.replays, delivery.replayed_at) == (1, 2, at(2))
    first, second, third = agent.work_items.order_by("id")
    assert "replay" not in json.loads(first.context)
    assert json.loads(third.context)["replay"] == 2
    assert second.idempotency_key == f"delivery:{delivery.pk}:triage:replay1"
    assert {first.delivery_id, second.delivery_id, third.delivery_id} == {delivery.pk}
    assert second.requested_by == f"ann, replay 1 of delivery {delivery.pk}"
    details = RunEvent.objects.filter(name="delivery.replayed").values_list("detail", flat=True)
    assert next(iter(details)) == f"ann: delivery {delivery.pk}, 1 matched"


def test_a_replay_uses_the_current_filters(fleet: Fleet):
    agent = subscribed_agent(fleet, events=["push"])
    receive("a")
    columns = {"webhooks": [{"source": "gh", "filters": {"events": ["issues"]}}]}
    Agent.objects.filter(pk=agent.pk).update(**columns)
    assert deliveries.replay(Delivery.objects.get(), "ann", NOON).matched == 1
    assert Delivery.objects.get().outcome == "matched"


@pytest.mark.fault("F66")
def test_a_replay_parses_the_body_again(fleet: Fleet):
    subscribed_agent(fleet)
    receive("a", body=b"{")
    Delivery.objects.update(body=json.dumps(ISSUE).encode())
    assert deliveries.replay(Delivery.objects.get(), "ann", NOON).matched == 1
    assert json.loads(Delivery.objects.get().context)["title"] == "It broke"


def test_deliveries_of_a_removed_source_can_be_replayed(fleet: Fleet, gh: WebhookSource):
    subscribed_agent(fleet)
    receive("a")
    WebhookSource.objects.filter(pk=gh.pk).update(removed_at=NOON)
    assert deliveries.replay(Delivery.objects.get(), "ann", NOON).matched == 1


def test_deliveries_of_a_disabled_tenant_are_not_replayed(fleet: Fleet):
    receive("a")
    Tenant.objects.update(disabled_at=NOON)
    with pytest.raises(Refused, match="tenant is disabled"):
        deliveries.replay(Delivery.objects.get(), "ann", NOON)


def test_a_deleted_delivery_cannot_be_replayed(fleet: Fleet):
    receive("a")
    delivery = Delivery.objects.get()
    Delivery.objects.all().delete()
    with pytest.raises(Refused, match="was removed"):
        deliveries.replay(delivery, "ann", NOON)


def test_deliveries_are_removed_after_a_month(fleet: Fleet):
    receive("a", "b")
    Delivery.objects.filter(delivery_id="a").update(received_at=NOON - timedelta(days=2))
    remove_old_rows(NOON + timedelta(days=29))
    assert list(Delivery.objects.values_list("delivery_id", flat=True)) == ["b"]
