"""Bodies that are too big, too slow, too many, or no JSON at all."""

import asyncio
import json
import time
from urllib.parse import urlencode

import pytest

from agents_app.models import Delivery, Tenant, WorkItem
from gateway_app.asgi.body import BodyBudget
from gateway_app.webhooks import intake
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, SECRET, Door, Post, listens, signed, source

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 5 * 2**20


@pytest.fixture(autouse=True)
def fleet(transactional_db, monkeypatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    source(fleet.tenant, "any", type="generic")
    listens(fleet.agent)
    return fleet


# --- how much and how fast ------------------------------------------------------------------


def test_an_announced_size_beyond_the_limit_is_refused_before_a_byte_is_read():
    post = Post("/webhooks/generic", [b""], {"content-length": str(LIMIT + 1)})
    answer = Door().one(post)
    assert (answer.status, answer.content["error"]["code"]) == (413, "too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("announced", [{}, {"content-length": "10"}, {"content-length": "-1"}])
def test_bytes_are_counted_whatever_was_announced(announced):
    door = Door()
    answer = door.one(Post("/webhooks/generic", [b"x" * 2**20] * 6, announced))
    assert answer.status == 413
    assert door.app.budget.used_bytes == 0


def test_a_body_of_exactly_the_limit_is_read():
    assert Door().one(Post("/webhooks/generic", b"x" * LIMIT)).status == 401


def test_each_provider_has_a_limit_of_its_own():
    assert Door().one(signed(b"[" + b"1," * 3 * 2**20 + b"1]")).status == 200


def test_a_body_that_does_not_come_is_not_waited_for():
    began = time.monotonic()
    answer = Door(body_seconds=0.2).one(Post(body=b"{", hangs=True))
    assert (answer.status, answer.content["error"]["code"]) == (408, "too_slow")
    assert time.monotonic() - began < 2


def test_a_body_that_trickles_is_not_waited_for_either():
    answer = Door(body_seconds=0.2).one(Post(body=[b"x"] * 100, pause_seconds=0.05))
    assert answer.status == 408


def test_whoever_hangs_up_gets_no_answer_and_leaves_nothing():
    door = Door()

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise AssertionError("there is nobody to tell")

    scope = {"type": "http", "method": "POST", "path": "/webhooks/github", "headers": []}
    asyncio.run(door.app(scope, gone, send))
    assert not Delivery.objects.exists()


def test_more_bytes_at_once_than_there_is_room_for_are_told_to_come_again():
    door = Door(BodyBudget(2**20))
    big = Post("/webhooks/generic", [b"x" * 300_000] * 2, pause_seconds=0.1)
    answers = door.post(*[big] * 4)
    assert sorted({answer.status for answer in answers}) == [401, 503]
    busy = next(answer for answer in answers if answer.status == 503)
    assert int(busy.headers["retry-after"]) > 0
    assert door.app.budget.used_bytes == 0


def test_what_cannot_be_committed_in_time_is_told_to_come_again(monkeypatch):
    monkeypatch.setattr(intake, "ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(intake.deliveries, "store", lambda *_: time.sleep(0.5))
    answer = Door().one(signed(ISSUE))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")


# --- what is in it --------------------------------------------------------------------------

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
def test_a_signed_body_that_is_no_json_is_kept_as_it_came(body):
    answer = Door().one(signed(body))
    delivery = Delivery.objects.get()
    assert answer.status == 200
    assert (delivery.outcome, answer.content["matched"]) == ("unparseable", 0)
    assert bytes(delivery.body) == body
    assert delivery.reason.startswith("the body is no JSON")


@pytest.mark.parametrize("title", ["a\\u0000b", "x\\ud800", "\\u001b]52;c;x\\u0007", "x" * 50_000])
def test_text_that_no_database_or_terminal_wants_is_cleaned_for_the_agent(title):
    body = json.dumps(ISSUE).replace("It broke", title).encode()
    assert Door().one(signed(body)).content["matched"] == 1
    told = json.loads(WorkItem.objects.get().context)["title"]
    assert told.isprintable() and len(told) <= 4003


@pytest.mark.fault("F67")
def test_a_form_with_the_json_in_it_is_understood():
    post = signed(urlencode({"payload": json.dumps(ISSUE)}).encode())
    headers = {**post.headers, "content-type": "application/x-www-form-urlencoded"}
    assert Door().one(Post(body=post.body, headers=headers)).content["matched"] == 1


@pytest.mark.parametrize(
    "body", [b"", b"payload=", b"a=1", b"payload=%ff", b"payload={}&payload={}"]
)
def test_a_form_that_is_none_is_kept_all_the_same(body):
    post = signed(body)
    headers = {**post.headers, "content-type": "application/x-www-form-urlencoded"}
    assert Door().one(Post(body=body, headers=headers)).status == 200
    assert Delivery.objects.get().outcome == "unparseable"


@pytest.mark.fault("F67")
def test_a_wrong_content_type_changes_nothing():
    post = signed(ISSUE)
    headers = {**post.headers, "content-type": "text/plain; charset=latin-1"}
    assert Door().one(Post(body=post.body, headers=headers)).content["matched"] == 1


def test_a_ping_is_known_and_ignored():
    assert Door().one(signed({"zen": "x"}, event="ping")).status == 200
    assert Delivery.objects.get().outcome == "ignored"


def test_headers_with_credentials_are_not_kept():
    post = signed(ISSUE)
    secret = ("authorization", "cookie", "x-gitlab-token", "x-api-key", "x-hook-secret", "x-auth")
    headers = {**post.headers, **dict.fromkeys(secret, "abc")}
    Door().one(Post(body=post.body, headers=headers))
    assert "abc" not in Delivery.objects.get().headers
