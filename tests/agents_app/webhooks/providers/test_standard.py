"""Standard Webhooks: encoded keys, several signatures, a typed payload."""

import base64
from dataclasses import replace

from agents_app.webhooks.providers import PROVIDERS, check_signature
from tests.agents_app.webhooks.providers.signing import (
    NOW,
    SEED,
    body_of,
    ed25519_public,
    ed25519_sign,
    stamp,
    standard,
)

STANDARD = PROVIDERS["standard"]
KEY = bytes(range(24))
SECRETS = {"main": "whsec_" + base64.b64encode(KEY).decode()}
BODY = body_of({"type": "user.created", "timestamp": "2026-03-01T11:59:59Z", "data": {"id": 7}})


def with_signature(signature):
    request = standard(BODY, KEY)
    return replace(request, headers={**request.headers, "webhook-signature": signature})


def test_a_key_in_base64_is_decoded():
    assert check_signature(STANDARD, standard(BODY, KEY), SECRETS, NOW).signer == "main"


def test_one_valid_signature_among_several_is_enough():
    good = standard(BODY, KEY).header("webhook-signature")
    for several in (f"v1,AAAA {good}", f"{good} v1a,AAAA", f"nonsense  {good} v9,"):
        assert check_signature(STANDARD, with_signature(several), SECRETS, NOW).accepted


def test_a_signature_counts_under_its_own_version_only():
    value = standard(BODY, KEY).header("webhook-signature").removeprefix("v1,")
    for wrong in (value, f"v1a,{value}", f"v2,{value}", f"v1,{value}x"):
        assert not check_signature(STANDARD, with_signature(wrong), SECRETS, NOW).accepted


def test_signatures_after_the_eighth_are_not_tried():
    good = standard(BODY, KEY).header("webhook-signature")
    assert not check_signature(
        STANDARD, with_signature("v1,AAAA " * 8 + good), SECRETS, NOW
    ).accepted


def test_a_public_key_verifies_signatures_of_version_v1a():
    public = {"main": "whpk_" + base64.b64encode(ed25519_public(SEED)).decode()}
    message = f"msg_1.{stamp()}.".encode() + BODY
    signature = "v1a," + base64.b64encode(ed25519_sign(SEED, message)).decode()
    assert check_signature(STANDARD, with_signature(signature), public, NOW).accepted
    assert not check_signature(STANDARD, with_signature("v1a,AAAA"), public, NOW).accepted


def test_a_request_with_another_or_no_id_is_refused():
    for identity in ("", "msg_2"):
        request = standard(BODY, KEY)
        other = replace(request, headers={**request.headers, "webhook-id": identity})
        assert not check_signature(STANDARD, other, SECRETS, NOW).accepted


def test_the_type_is_the_event_and_the_data_the_body():
    context = STANDARD.parse({}, {"type": "user.created", "data": {"id": 7}}, NOW)
    assert (context.event, context.body) == ("user.created", '{"id": 7}')
    assert STANDARD.parse({}, {"data": {}}, NOW) is None
