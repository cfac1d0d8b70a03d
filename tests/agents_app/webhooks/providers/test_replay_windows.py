"""The maximum age of a signed request, per provider."""

from datetime import timedelta

import pytest

from agents_app.webhooks.providers import PROVIDERS, check_signature
from tests.agents_app.webhooks.providers.signing import (
    NOW,
    SECRET,
    SEED,
    body_of,
    discord,
    ed25519_public,
    plain,
    slack,
    stamp,
    standard,
    stripe,
)

BODY = b'{"type": 2}'
PUBLIC = {"main": ed25519_public(SEED).hex()}


@pytest.mark.parametrize(("ago", "accepted"), [(0, True), (300, True), (301, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_slack_discord_stripe_and_standard_allow_five_minutes_either_way(ago, accepted, sign):
    sent = stamp(sign * ago)
    secrets = {"main": SECRET}
    verdicts = [
        check_signature(PROVIDERS["slack"], slack(BODY, sent=sent), secrets, NOW),
        check_signature(PROVIDERS["discord"], discord(BODY, sent=sent), PUBLIC, NOW),
        check_signature(PROVIDERS["standard"], standard(BODY, SECRET.encode(), sent), secrets, NOW),
        check_signature(PROVIDERS["stripe"], stripe(BODY, sent=sent), secrets, NOW),
    ]
    assert [verdict.accepted for verdict in verdicts] == [accepted] * 4


def test_an_old_interaction_is_stale_and_has_a_signer():
    verdict = check_signature(PROVIDERS["discord"], discord(BODY, sent=stamp(301)), PUBLIC, NOW)
    assert (verdict.signer, verdict.problem) == ("main", "stale")


@pytest.mark.parametrize("sent", ["", "soon", "1e9", "\u0661", "9" * 13, "-1", " 1"])
def test_an_invalid_timestamp_is_never_fresh(sent):
    assert not check_signature(
        PROVIDERS["slack"], slack(BODY, sent=sent), {"main": SECRET}, NOW
    ).accepted
    assert not check_signature(PROVIDERS["discord"], discord(BODY, sent=sent), PUBLIC, NOW).accepted


@pytest.mark.parametrize(
    ("ago", "accepted"),
    [(0, True), (7 * 3600 + 60, True), (8 * 3600 + 1, False), (-300, True), (-301, False)],
)
def test_linear_is_accepted_until_its_last_retry(ago, accepted):
    body = body_of({"webhookTimestamp": int((NOW.timestamp() - ago) * 1000)})
    verdict = check_signature(PROVIDERS["linear"], plain("linear", body), {"main": SECRET}, NOW)
    assert verdict.accepted is accepted


DAY = 24 * 3600


@pytest.mark.parametrize(
    ("ago", "accepted"),
    [(0, True), (DAY - 1, True), (DAY, False), (10 * DAY, False), (-300, True), (-301, False)],
)
def test_jira_and_pagerduty_are_accepted_while_their_bodies_are_remembered(ago, accepted):
    """A repeated body is a duplicate for a day: after it the body is too old."""
    happened = NOW - timedelta(seconds=ago)
    bodies = {
        "jira": body_of({"timestamp": int(happened.timestamp() * 1000)}),
        "pagerduty": body_of({"event": {"occurred_at": happened.isoformat()}}),
    }
    for name, body in bodies.items():
        verdict = check_signature(PROVIDERS[name], plain(name, body), {"main": SECRET}, NOW)
        assert (verdict.accepted, verdict.signer) == (accepted, "main")


@pytest.mark.parametrize("name", ["jira", "pagerduty"])
@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"not json",
        b'{"timestamp": "x", "event": {"occurred_at": "x"}}',
        b'{"event": {"occurred_at": "2020-01-01T00:00:00"}}',
    ],
)
def test_a_signed_body_without_a_time_is_accepted(name, body):
    assert check_signature(PROVIDERS[name], plain(name, body), {"main": SECRET}, NOW).accepted


@pytest.mark.parametrize("body", [b"{}", b"not json", b'{"webhookTimestamp": "x"}'])
def test_a_signed_linear_body_without_a_time_is_accepted(body):
    assert check_signature(
        PROVIDERS["linear"], plain("linear", body), {"main": SECRET}, NOW
    ).accepted
