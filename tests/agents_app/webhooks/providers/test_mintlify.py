"""Deliveries of Mintlify, and the options for its undocumented signature."""

import pytest

from agents_app.errors import ConfigError
from agents_app.webhooks.providers import PROVIDERS, Signed, check_signature, provider_for
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, hmac_base64

MINTLIFY = PROVIDERS["mintlify"]


def parsed(**payload):
    return MINTLIFY.parse({}, payload, NOW)


def test_the_error_of_a_build_that_did_not_fail_is_the_body():
    assert parsed(action="queued", error="late").body == "late"
    assert (
        parsed(action="failed", error="x" * 4000).body
        == ("Build failed: " + "x" * 4000)[:4000] + "..."
    )


@pytest.mark.parametrize(
    ("action", "conclusion"),
    [("failed", "failure"), ("success", "success"), ("succeeded", "success"), ("queued", None)],
)
def test_a_finished_build_has_a_conclusion(action, conclusion):
    assert parsed(action=action).conclusion == conclusion


def test_header_prefix_and_encoding_of_the_signature_are_options():
    own = provider_for("mintlify", {"header": "X-Sig", "prefix": "h=", "encoding": "base64"})
    body = b'{"action": "failed"}'
    request = Signed({"x-sig": "h=" + hmac_base64(SECRET.encode(), body)}, body)
    assert check_signature(own, request, {"main": SECRET}, NOW).accepted
    assert not check_signature(MINTLIFY, request, {"main": SECRET}, NOW).accepted


def test_an_unknown_option_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match="heder: unknown option; did you mean 'header'"):
        provider_for("mintlify", {"heder": "x"})


def test_the_delivery_id_is_the_hash_of_the_body():
    assert MINTLIFY.delivery_id({"x-delivery-id": "1"}, b"a").startswith("sha256:ca978112")
