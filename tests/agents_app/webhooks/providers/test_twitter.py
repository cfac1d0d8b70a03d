"""X's deliveries, as its public documents show them, and its way to confirm an address."""

import pytest

from agents_app.webhooks.providers import PROVIDERS, Signed
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, hmac_base64

TWITTER = PROVIDERS["twitter"]


def test_a_post_is_told_with_who_wrote_it():
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
def test_no_signature_is_given_of_what_could_be_a_delivery(token: str):
    """Guard: anybody may ask. Sign any token, and anybody can sign a delivery of their own."""
    assert TWITTER.confirm({"crc_token": token}, {"one": SECRET}) is None


@pytest.mark.parametrize("token", ["AAA", "null", "12", "a" * 200])
def test_the_answer_to_a_token_signs_no_delivery(token: str):
    """Guard: whoever asks for the signature of a token could else post that token as X."""
    secrets = {"one": SECRET}
    signature = TWITTER.confirm({"crc_token": token}, secrets)["response_token"]
    request = Signed({"x-twitter-webhooks-signature": signature}, token.encode())
    assert TWITTER.verify(request, secrets, NOW) is None


def test_without_a_secret_there_is_nothing_to_confirm():
    assert TWITTER.confirm({"crc_token": "abc"}, {}) is None
    assert TWITTER.confirm({"crc_token": "abc"}, {"one": ""}) is None
    assert TWITTER.confirm({}, {"one": SECRET}) is None
