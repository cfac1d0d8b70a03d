"""Deliveries of Slack, reduced to the fields that Drover reads."""

from agents_app.webhooks.providers import PROVIDERS, match_filters
from tests.agents_app.webhooks.providers.signing import NOW, body_of

SLACK = PROVIDERS["slack"]


def parsed(event):
    payload = {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": event}
    return SLACK.parse({}, payload, NOW)


def test_a_mention_can_be_filtered_by_its_channel():
    context = parsed({"type": "app_mention", "user": "U1", "text": "<@B> hi", "channel": "C1"})
    assert (context.body, context.sender, context.repo) == ("<@B> hi", "U1", "T1")
    assert match_filters(SLACK.filters, {"channels": ["C1"], "events": "app_*"}, context).matched
    assert match_filters(SLACK.filters, {"channels": ["C2"]}, context).reason == (
        "channels: wanted C2, got C1"
    )


def test_a_reaction_has_its_name_and_its_item():
    item = {"type": "message", "channel": "C1", "ts": "1.2"}
    context = parsed({"type": "reaction_added", "user": "U1", "reaction": "eyes", "item": item})
    assert (context.title, context.comment) == ("eyes", "message:C1")


def test_a_new_address_is_confirmed_with_the_challenge():
    challenge = {"type": "url_verification", "challenge": "3eZb", "token": "old"}
    assert SLACK.answer(challenge) == {"challenge": "3eZb"}
    assert SLACK.parse({}, challenge, NOW) is None


def test_other_payloads_are_not_answered_as_a_challenge():
    others = ({"type": "url_verification"}, {"type": "event_callback", "challenge": "x"}, [], None)
    assert [SLACK.answer(payload) for payload in others] == [None] * 4


def test_the_delivery_id_is_the_id_of_the_event():
    assert SLACK.delivery_id({}, body_of({"event_id": "Ev1"})) == "Ev1"
    assert SLACK.delivery_id({}, b"not json").startswith("sha256:")
