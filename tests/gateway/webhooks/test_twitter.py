"""X's deliveries, as its public documents show them, and its way to confirm an address."""

from agents_app.webhooks import PROVIDERS
from agents_app.webhooks.providers.twitter import crc_answer
from tests.gateway.webhooks.signing import NOW, SECRET, hmac_base64

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
    assert crc_answer("abc", SECRET) == {"response_token": expected}
