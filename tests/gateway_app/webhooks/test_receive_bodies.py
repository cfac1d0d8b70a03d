"""Bodies that are too large, too slow, too many, or not JSON."""

import asyncio
import json
import time
from urllib.parse import urlencode

import pytest

from agents_app.models import Delivery, Tenant, WorkItem
from gateway_app.asgi.body import BodyBudget
from gateway_app.webhooks import intake
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, SECRET, Post, WebhookClient, signed, source, subscribe

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 5 * 2**20


@pytest.fixture(autouse=True)
def fleet(transactional_db, monkeypatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    source(fleet.tenant, "any", type="generic")
    subscribe(fleet.agent)
    return fleet


# --- size and time --------------------------------------------------------------------------


def test_a_content_length_above_the_limit_is_refused_before_reading():
    post = Post("/webhooks/generic", [b""], {"content-length": str(LIMIT + 1)})
    answer = WebhookClient().one(post)
    assert (answer.status, answer.content["error"]["code"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("announced", [{}, {"content-length": "10"}, {"content-length": "-1"}])
def test_received_bytes_are_counted_for_any_content_length(announced):
    client = WebhookClient()
    answer = client.one(Post("/webhooks/generic", [b"x" * 2**20] * 6, announced))
    assert answer.status == 413
    assert client.app.budget.used_bytes == 0


def test_a_body_of_exactly_the_limit_is_read():
    assert WebhookClient().one(Post("/webhooks/generic", b"x" * LIMIT)).status == 401


def test_each_provider_has_its_own_body_limit():
    assert WebhookClient().one(signed(b"[" + b"1," * 3 * 2**20 + b"1]")).status == 200


def test_a_body_that_is_not_sent_in_time_is_refused():
    began = time.monotonic()
    answer = WebhookClient(body_seconds=0.2).one(Post(body=b"{", hangs=True))
    assert (answer.status, answer.content["error"]["code"]) == (408, "too_slow")
    assert time.monotonic() - began < 2


def test_a_body_that_is_sent_too_slowly_is_refused():
    answer = WebhookClient(body_seconds=0.2).one(Post(body=[b"x"] * 100, pause_seconds=0.05))
    assert answer.status == 408


def test_a_client_that_disconnects_gets_no_response_and_nothing_is_stored():
    client = WebhookClient()

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise AssertionError("the client has disconnected")

    scope = {"type": "http", "method": "POST", "path": "/webhooks/github", "headers": []}
    asyncio.run(client.app(scope, gone, send))
    assert not Delivery.objects.exists()


def test_bodies_beyond_the_memory_budget_are_a_503():
    client = WebhookClient(BodyBudget(2**20, 2**20))
    big = Post("/webhooks/generic", [b"x" * 300_000] * 2, pause_seconds=0.1)
    answers = client.post(*[big] * 4)
    assert sorted({answer.status for answer in answers}) == [401, 503]
    busy = next(answer for answer in answers if answer.status == 503)
    assert int(busy.headers["retry-after"]) > 0
    assert client.app.budget.used_bytes == 0


def test_a_delivery_that_is_not_committed_in_time_is_a_503(monkeypatch):
    monkeypatch.setattr(intake, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(intake.deliveries, "store", lambda *_: time.sleep(0.5))
    answer = WebhookClient().one(signed(ISSUE))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")


# --- content --------------------------------------------------------------------------------

HOSTILE = {
    "malformed": b'{"a": ',
    "empty": b"",
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "deep": b"[" * 100_000,
    "NaN": b'{"a": NaN}',
    "many digits": b'{"a": ' + b"1" * 5000 + b"}",
    "a key twice": b'{"a": 1, "a": 2}',
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.fault("F66")
def test_a_signed_body_that_is_not_json_is_stored_unchanged(body):
    answer = WebhookClient().one(signed(body))
    delivery = Delivery.objects.get()
    assert answer.status == 200
    assert (delivery.outcome, answer.content["matched"]) == ("unparseable", 0)
    assert bytes(delivery.body) == body
    assert delivery.reason.startswith("the body is not valid JSON")


@pytest.mark.parametrize("title", ["a\\u0000b", "x\\ud800", "\\u001b]52;c;x\\u0007", "x" * 50_000])
@pytest.mark.fault("F66")
def test_the_context_has_printable_text_of_limited_length(title):
    body = json.dumps(ISSUE).replace("It broke", title).encode()
    assert WebhookClient().one(signed(body)).content["matched"] == 1
    shown = json.loads(WorkItem.objects.get().context)["title"]
    assert shown.isprintable() and len(shown) <= 4003


@pytest.mark.fault("F67")
def test_a_form_with_the_field_payload_is_parsed():
    post = signed(urlencode({"payload": json.dumps(ISSUE)}).encode())
    headers = {**post.headers, "content-type": "application/x-www-form-urlencoded"}
    assert WebhookClient().one(Post(body=post.body, headers=headers)).content["matched"] == 1


@pytest.mark.parametrize(
    "body", [b"", b"payload=", b"a=1", b"payload=%ff", b"payload={}&payload={}"]
)
@pytest.mark.fault("F67")
def test_an_invalid_form_is_stored_as_unparseable(body):
    post = signed(body)
    headers = {**post.headers, "content-type": "application/x-www-form-urlencoded"}
    assert WebhookClient().one(Post(body=body, headers=headers)).status == 200
    assert Delivery.objects.get().outcome == "unparseable"


@pytest.mark.fault("F67")
def test_a_wrong_content_type_changes_nothing():
    post = signed(ISSUE)
    headers = {**post.headers, "content-type": "text/plain; charset=latin-1"}
    assert WebhookClient().one(Post(body=post.body, headers=headers)).content["matched"] == 1


def test_a_ping_is_stored_as_ignored():
    assert WebhookClient().one(signed({"zen": "x"}, event="ping")).status == 200
    assert Delivery.objects.get().outcome == "ignored"


def test_headers_with_credentials_are_not_stored():
    post = signed(ISSUE)
    secret = ("authorization", "cookie", "x-gitlab-token", "x-api-key", "x-hook-secret", "x-auth")
    headers = {**post.headers, **dict.fromkeys(secret, "abc")}
    WebhookClient().one(Post(body=post.body, headers=headers))
    assert "abc" not in Delivery.objects.get().headers
