"""The maximum age of a signed request, per provider."""

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
)

BODY = b'{"type": 2}'
PUBLIC = {"main": ed25519_public(SEED).hex()}


@pytest.mark.parametrize(("ago", "accepted"), [(0, True), (300, True), (301, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_slack_discord_and_standard_allow_five_minutes_either_way(ago, accepted, sign):
    sent = stamp(sign * ago)
    secrets = {"main": SECRET}
    verdicts = [
        check_signature(PROVIDERS["slack"], slack(BODY, sent=sent), secrets, NOW),
        check_signature(PROVIDERS["discord"], discord(BODY, sent=sent), PUBLIC, NOW),
        check_signature(PROVIDERS["standard"], standard(BODY, SECRET.encode(), sent), secrets, NOW),
    ]
    assert [verdict.accepted for verdict in verdicts] == [accepted] * 3


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


@pytest.mark.parametrize("body", [b"{}", b"not json", b'{"webhookTimestamp": "x"}'])
def test_a_signed_linear_body_without_a_time_is_accepted(body):
    assert check_signature(
        PROVIDERS["linear"], plain("linear", body), {"main": SECRET}, NOW
    ).accepted
