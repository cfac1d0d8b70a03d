"""Deliveries of X as its documentation shows them, and the check of an address."""

import pytest

from agents_app.webhooks.providers import PROVIDERS, Signed
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, hmac_base64

TWITTER = PROVIDERS["twitter"]


def test_a_post_has_its_author_as_the_sender():
    post = {"text": "hello", "user": {"screen_name": "ann"}}
    payload = {"for_user_id": "1", "user_has_blocked": False, "tweet_create_events": [post]}
    context = TWITTER.parse({}, payload, NOW)
    assert (context.event, context.repo) == ("tweet_create_events", "1")
    assert (context.body, context.sender) == ("hello", "ann")


def test_a_delivery_without_a_list_is_ignored():
    assert TWITTER.parse({}, {"for_user_id": "1"}, NOW) is None
    assert TWITTER.parse({}, {"tweet_create_events": []}, NOW).sender == "unknown"


def test_a_token_is_answered_with_its_signature():
    expected = "sha256=" + hmac_base64(SECRET.encode(), b"abc")
    secrets = {"none": "", "new": SECRET, "old": "x"}
    assert TWITTER.confirm({"crc_token": "abc"}, secrets) == {"response_token": expected}


@pytest.mark.parametrize("token", ["", "{}", '{"a": []}', "[1]", "a b", "a\n", "é", "a" * 201])
def test_a_text_that_could_be_a_delivery_is_not_signed(token: str):
    """Guard: any client can send a token. If any text were signed, it could forge a delivery."""
    assert TWITTER.confirm({"crc_token": token}, {"one": SECRET}) is None


@pytest.mark.parametrize("token", ["AAA", "null", "12", "a" * 200])
def test_the_signature_of_a_token_is_refused_for_a_delivery(token: str):
    """Guard: a client could otherwise send the signed token as a delivery of X."""
    secrets = {"one": SECRET}
    signature = TWITTER.confirm({"crc_token": token}, secrets)["response_token"]
    request = Signed({"x-twitter-webhooks-signature": signature}, token.encode())
    assert TWITTER.verify(request, secrets, NOW) is None


def test_without_a_secret_no_token_is_signed():
    assert TWITTER.confirm({"crc_token": "abc"}, {}) is None
    assert TWITTER.confirm({"crc_token": "abc"}, {"one": ""}) is None
    assert TWITTER.confirm({}, {"one": SECRET}) is None
