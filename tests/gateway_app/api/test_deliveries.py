"""/v1/deliveries: list, show with the decision for each agent, replay."""

import json
from typing import Any

import pytest

from agents_app.models import Delivery, RunEvent, WebhookSource, WorkItem
from agents_app.webhooks import deliveries
from agents_app.webhooks.providers import RawDelivery
from agents_app.webhooks.source_index import read_source_index
from tests.agents_app.fleet import NOON, Fleet, at
from tests.gateway_app.api.calling import Api

ISSUE = {
    "action": "opened",
    "issue": {"number": 7, "title": "It broke"},
    "repository": {"full_name": "acme/site"},
}
HEADERS = {
    "content-type": "application/json",
    "x-github-event": "issues",
    "x-hub-signature-256": "sha256=canary",
    "x-gitlab-token": "canary",
    "x-slack-request-timestamp": "1700000000",
}


@pytest.fixture(autouse=True)
def gh(fleet: Fleet) -> WebhookSource:
    fleet.agent("wants", webhooks=[{"source": "gh", "filters": {"events": ["issues"]}}])
    fleet.agent("other", webhooks=[{"source": "gh", "filters": {"events": ["push"]}}])
    return WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")


def receive(number: int, body: Any = ISSUE, source: str = "gh", **headers: str) -> Delivery:
    numbered = body if isinstance(body, bytes) else {**body, "sent": number}
    content = numbered if isinstance(numbered, bytes) else json.dumps(numbered).encode()
    index = read_source_index()
    sender = next(each for each in index.sources if each.name == source)
    raw = RawDelivery({**HEADERS, **headers}, content, f"guid-{number}", at(number))
    (receipt,) = deliveries.store(
        [deliveries.match_delivery(index, sender, raw, "main")], at(number)
    )
    return Delivery.objects.get(pk=receipt.delivery)


def ids(api: Api, **query: Any) -> list[int]:
    return [each["id"] for each in api.get("/deliveries", **query).json["deliveries"]]


def test_deliveries_are_paged_with_the_newest_first(reader: Api):
    keys = [receive(number).pk for number in range(3)]
    page = reader.get("/deliveries", limit=2).json
    assert [each["id"] for each in page["deliveries"]] == keys[:0:-1]
    assert ids(reader, cursor=page["next_cursor"]) == keys[:1]
    assert "body" not in page["deliveries"][0] and "headers" not in page["deliveries"][0]


def test_deliveries_are_filtered(fleet: Fleet, reader: Api):
    WebhookSource.objects.create(tenant=fleet.tenant, name="chat", type="slack")
    first = receive(1)
    second = receive(2, b"{")
    third = receive(3, {"type": "event_callback", "event": {"type": "message"}}, "chat")
    everything = [third.pk, second.pk, first.pk]
    assert ids(reader) == everything
    assert ids(reader, source="gh") == everything[1:]
    assert ids(reader, provider="slack") == [third.pk]
    assert ids(reader, outcome="unparseable") == [second.pk]
    assert ids(reader, event="issues") == [first.pk]
    assert ids(reader, since=at(2).timestamp()) == everything[:2]
    assert reader.get("/deliveries", source="missing").status == 404
    assert reader.get("/deliveries", outcome="lost").status == 400


def test_a_delivery_has_the_decision_for_each_agent(reader: Api):
    delivery = receive(1)
    shown = reader.get(f"/deliveries/{delivery.pk}").json
    assert (shown["source"], shown["event"], shown["action"]) == ("gh", "issues", "opened")
    assert (shown["outcome"], shown["matched"], shown["skipped"]) == ("matched", 1, 1)
    assert shown["received_at"] == at(1).timestamp()
    reasons = {each["agent"]: (each["matched"], each["reason"]) for each in shown["decisions"]}
    assert reasons == {"wants": (True, ""), "other": (False, "events: wanted push, got issues")}
    assert shown["context"]["title"] == "It broke"
    (work,) = shown["work"]
    assert (work["agent"], work["state"]) == ("wants", "admitted")


def test_signatures_and_tokens_in_headers_are_hidden(reader: Api, gh: WebhookSource):
    delivery = receive(1, **{"x-our-own": "canary"})
    WebhookSource.objects.filter(pk=gh.pk).update(options={"header": "X-Our-Own"})
    reply = reader.get(f"/deliveries/{delivery.pk}")
    assert "canary" not in reply.response.content.decode()
    headers = reply.json["headers"]
    assert headers["x-github-event"] == "issues"
    assert headers["x-slack-request-timestamp"] == "1700000000"
    assert headers["x-hub-signature-256"] == "(not shown)"
    assert "x-gitlab-token" not in headers  # not stored


@pytest.mark.parametrize(
    ("raw", "shown", "encoding"),
    [
        ('{"a": "ä"}'.encode(), '{"a": "ä"}', "text"),
        (b"\xff\x00", "/wA=", "base64"),
        (b"", "", "text"),
    ],
)
def test_a_body_that_is_not_utf_8_is_shown_in_base64(
    reader: Api, raw: bytes, shown: str, encoding: str
):
    delivery = reader.get(f"/deliveries/{receive(1, raw).pk}").json
    assert (delivery["body"], delivery["body_encoding"]) == (shown, encoding)


def test_a_replay_by_the_api_adds_work_with_its_number(api: Api):
    delivery = receive(1)
    reply = api.post(f"/deliveries/{delivery.pk}/replay")
    assert reply.status == 202
    assert reply.json == {"delivery": delivery.pk, "matched": 1, "skipped": 1, "replays": 1}
    assert Delivery.objects.count() == 1
    _, replayed = WorkItem.objects.order_by("pk")
    assert json.loads(replayed.context)["replay"] == 1
    assert replayed.requested_by == f"token ci, replay 1 of delivery {delivery.pk}"
    (entry,) = RunEvent.objects.filter(name="delivery.replayed")
    assert entry.detail.startswith("token ci: ")


def test_a_token_with_the_scope_read_cannot_replay(reader: Api):
    delivery = receive(1)
    assert reader.post(f"/deliveries/{delivery.pk}/replay").status == 403
    assert WorkItem.objects.count() == 1


def test_deliveries_of_a_source_with_invalid_settings_are_not_replayed(api: Api, gh: WebhookSource):
    delivery = receive(1)
    WebhookSource.objects.filter(pk=gh.pk).update(options={"nonsense": 1})
    reply = api.post(f"/deliveries/{delivery.pk}/replay")
    assert (reply.status, reply.error["code"]) == (409, "refused")
    assert Delivery.objects.get().replays == 0


def test_an_unmatched_delivery_has_its_reason(reader: Api):
    delivery = receive(1, {"action": "x"}, **{"x-github-event": "star"})
    shown = reader.get(f"/deliveries/{delivery.pk}").json
    assert shown["work"] == [] and shown["reason"]
    assert shown["received_at"] > NOON.timestamp()
