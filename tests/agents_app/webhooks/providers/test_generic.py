"""The options of the generic provider, and invalid options."""

import pytest

from agents_app.errors import ConfigError
from agents_app.webhooks.providers import (
    PROVIDERS,
    TRIAL_PROVIDERS,
    Signed,
    check_signature,
    provider_for,
)
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, hmac_hex

BODY = b'{"data": {"kind": "paid"}}'


def test_header_prefix_and_event_path_are_options():
    options = {"header": "X-Pay", "prefix": "sha=", "event_path": "$.data.kind"}
    provider = provider_for("generic", options)
    request = Signed({"x-pay": "sha=" + hmac_hex(SECRET, BODY)}, BODY)
    assert check_signature(provider, request, {"main": SECRET}, NOW).signer == "main"
    assert provider.parse({}, {"data": {"kind": "paid"}}, NOW).event == "paid"
    assert provider.parse({}, {"data": "paid"}, NOW) is None


def test_a_secret_in_the_path_is_accepted_with_secret_in_path():
    provider = provider_for("generic", {"secret_in_path": True})
    secrets = {"old": "x", "main": SECRET}
    assert check_signature(provider, Signed({}, BODY, SECRET), secrets, NOW).signer == "main"
    for wrong in ("", "s3cre", "S3CRET", "\ud800"):
        assert not check_signature(provider, Signed({}, BODY, wrong), secrets, NOW).accepted


def test_a_secret_in_the_path_is_refused_without_secret_in_path():
    assert not check_signature(
        PROVIDERS["generic"], Signed({}, BODY, SECRET), {"a": SECRET}, NOW
    ).accepted


def test_the_delivery_id_is_in_the_configured_header():
    provider = provider_for("generic", {"delivery_header": "X-Event-Id"})
    assert provider.delivery_id({"x-event-id": "e1"}, BODY) == "e1"
    assert provider.delivery_id({}, BODY).startswith("sha256:")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"encoding": "rot13"}, "encoding: must be hex or base64"),
        ({"header": 5}, "header: must be text"),
        ({"secret_in_path": "yes"}, "secret_in_path: must be true or false"),
        ({"event_pth": "x"}, "event_pth: unknown option; did you mean 'event_path'"),
    ],
)
def test_an_invalid_option_is_refused_with_its_name(options, reason):
    with pytest.raises(ConfigError, match=reason):
        provider_for("generic", options)


def test_an_unknown_provider_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="there is no provider 'gitea'; use one of github"):
        provider_for("gitea", {})


def test_a_provider_without_options_refuses_options():
    with pytest.raises(ConfigError, match="header: unknown option"):
        provider_for("github", {"header": "x"})


def test_the_provider_without_signatures_is_not_in_providers():
    assert not PROVIDERS.keys() & TRIAL_PROVIDERS.keys()
    assert check_signature(TRIAL_PROVIDERS["test"], Signed({}, b""), {}, NOW).accepted
