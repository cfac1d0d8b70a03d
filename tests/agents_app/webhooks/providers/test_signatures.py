"""Signatures are accepted only with one of the secrets of the source."""

from dataclasses import replace

import pytest

from agents_app.webhooks.providers import PROVIDERS, UNSIGNED, Signed, check_signature
from tests.agents_app.webhooks.providers.signing import (
    NOW,
    SECRET,
    SEED,
    body_of,
    discord,
    ed25519_public,
    signed,
)

BODY = body_of({"action": "opened", "title": "h\u00e9llo \u2603"})
WITH_SECRET = sorted(PROVIDERS.keys() - {"discord"})
ALL = sorted(PROVIDERS)


def keys(name: str) -> dict[str, str]:
    return {"main": ed25519_public(SEED).hex() if name == "discord" else SECRET}


def request(name: str) -> Signed:
    return discord(BODY) if name == "discord" else signed(name, BODY)


@pytest.mark.parametrize("name", ALL)
def test_the_verdict_names_the_secret_that_signed(name):
    assert check_signature(PROVIDERS[name], request(name), keys(name), NOW).signer == "main"


@pytest.mark.parametrize("name", ALL)
def test_any_of_several_active_secrets_is_accepted(name):
    wrong = ed25519_public(bytes(32)).hex() if name == "discord" else "old"
    several = {"old": wrong, **keys(name), "next": wrong}
    assert check_signature(PROVIDERS[name], request(name), several, NOW).signer == "main"


@pytest.mark.parametrize("name", ALL)
def test_a_changed_body_is_refused(name):
    changed = replace(request(name), body=BODY + b" ")
    verdict = check_signature(PROVIDERS[name], changed, keys(name), NOW)
    assert (verdict.accepted, verdict.problem) == (False, "bad_signature")


@pytest.mark.parametrize("name", WITH_SECRET)
def test_another_secret_is_refused(name):
    assert not check_signature(PROVIDERS[name], request(name), {"main": "other"}, NOW).accepted


@pytest.mark.parametrize("name", ALL)
def test_a_request_without_signature_is_refused(name):
    assert not check_signature(PROVIDERS[name], Signed({}, BODY), keys(name), NOW).accepted


@pytest.mark.parametrize("name", ALL)
def test_without_a_secret_a_request_is_refused_unless_unsigned_ones_are_allowed(name):
    assert not check_signature(PROVIDERS[name], request(name), {}, NOW).accepted
    assert (
        check_signature(PROVIDERS[name], request(name), {}, NOW, allow_unsigned=True).signer
        == UNSIGNED
    )


@pytest.mark.parametrize("name", ALL)
def test_unsigned_requests_are_refused_if_there_is_a_secret(name):
    verdict = check_signature(
        PROVIDERS[name], Signed({}, BODY), keys(name), NOW, allow_unsigned=True
    )
    assert not verdict.accepted


@pytest.mark.parametrize("name", WITH_SECRET)
def test_an_empty_secret_accepts_no_request(name):
    forged = signed(name, BODY, "")
    assert not check_signature(
        PROVIDERS[name], forged, {"main": ""}, NOW, allow_unsigned=True
    ).accepted


def test_an_empty_standard_key_accepts_no_request():
    forged = signed("standard", BODY, "")
    assert not check_signature(PROVIDERS["standard"], forged, {"main": "whsec_"}, NOW).accepted


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "junk", ["\xff\xfe", "sha256=\xe9", "\ud800", "v1", ",", "", "\u0661" * 64]
)
def test_any_text_in_any_header_is_refused_without_an_error(name, junk):
    garbled = replace(request(name), headers=dict.fromkeys(request(name).headers, junk))
    assert not check_signature(PROVIDERS[name], garbled, keys(name), NOW).accepted
