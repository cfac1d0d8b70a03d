"""Deliveries of Stripe as its documentation shows them, reduced to the fields that matter."""

import pytest

from agents_app.webhooks.providers import PROVIDERS, Signed, check_signature, match_filters
from tests.agents_app.webhooks.providers.signing import (
    NOW,
    SECRET,
    body_of,
    hmac_hex,
    stamp,
    stripe,
)

STRIPE = PROVIDERS["stripe"]
INVOICE = {
    "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy",
    "object": "event",
    "api_version": "2019-02-19",
    "created": 1772366400,
    "data": {
        "object": {
            "id": "in_1MtHbELkdIwHu7ixl4OzzPMv",
            "object": "invoice",
            "amount_due": 2000,
            "status": "open",
        },
        "previous_attributes": {"attempt_count": 0},
    },
    "livemode": True,
    "pending_webhooks": 1,
    "request": {"id": None, "idempotency_key": "04a2ac1e"},
    "type": "invoice.payment_failed",
}
THIN = {
    "id": "evt_test_65R9Ijk8dKEYZcXeRWn16R9A7j1FSQ3w3TGDPLLGSM4CW0",
    "object": "v2.core.event",
    "type": "v2.core.account.updated",
    "livemode": False,
    "created": "2026-02-28T06:20:52.246Z",
    "context": "acct_123",
    "related_object": {
        "id": "acct_1T6P0T",
        "type": "v2.core.account",
        "url": "/v2/core/accounts/acct_1T6P0T",
    },
}


def parsed(payload):
    context = STRIPE.parse({}, payload, NOW)
    assert context is not None
    return context


def test_the_secret_is_used_with_its_prefix():
    secret = "whsec_c2VjcmV0"
    request = stripe(body_of(INVOICE), secret)
    assert check_signature(STRIPE, request, {"main": secret}, NOW).signer == "main"
    assert not check_signature(STRIPE, request, {"main": "c2VjcmV0"}, NOW).accepted


def test_one_of_several_signatures_is_enough_while_a_secret_changes():
    body, sent = body_of(INVOICE), stamp()
    old, new = (hmac_hex(each, f"{sent}.".encode() + body) for each in ("old-one", SECRET))
    request = Signed({"stripe-signature": f"t={sent},v1={old},v1={new}"}, body)
    assert check_signature(STRIPE, request, {"new": SECRET}, NOW).signer == "new"
    assert check_signature(STRIPE, request, {"old": "old-one"}, NOW).signer == "old"


@pytest.mark.parametrize(
    "header", ["t={t}", "v1={v}", "t={t},v0={v}", "t={t},v1=", "t={later},v1={v}", "v1={v},t=soon"]
)
def test_a_header_without_a_time_or_a_signature_of_it_is_refused(header):
    body, sent = body_of(INVOICE), stamp()
    value = hmac_hex(SECRET, f"{sent}.".encode() + body)
    given = header.format(t=sent, v=value, later=int(sent) + 1)
    request = Signed({"stripe-signature": given}, body)
    assert not check_signature(STRIPE, request, {"main": SECRET}, NOW).accepted


def test_the_delivery_id_is_that_of_the_event():
    assert STRIPE.delivery_id({}, body_of(INVOICE)) == "evt_1NG8Du2eZvKYlo2CUI79vXWy"
    assert STRIPE.delivery_id({}, b"not json").startswith("sha256:")


def test_an_event_has_its_object_in_the_context():
    context = parsed(INVOICE)
    assert (context.event, context.action) == ("invoice.payment_failed", "payment_failed")
    assert context.title == "invoice.payment_failed in_1MtHbELkdIwHu7ixl4OzzPMv"
    assert '"amount_due": 2000' in (context.body or "")
    assert (context.conclusion, context.labels, context.repo) == ("open", ("live",), "")
    assert context.timestamp == "2026-03-01T12:00:00.000Z"


def test_an_event_of_version_2_names_its_object():
    context = parsed(THIN)
    assert context.title == "v2.core.account.updated acct_1T6P0T"
    assert (context.repo, context.labels) == ("acct_123", ("test",))
    assert context.timestamp == "2026-02-28T06:20:52.246Z"


@pytest.mark.parametrize("created", [-1, 10**17, "x" * 10, None, [1]])
def test_any_time_is_accepted(created):
    assert parsed({**INVOICE, "created": created}).event == "invoice.payment_failed"


@pytest.mark.parametrize("payload", [{}, {"type": "x"}, {"type": "x", "object": ["event"]}, []])
def test_a_payload_that_is_no_event_is_ignored(payload):
    assert STRIPE.parse({}, payload, NOW) is None


def test_filters_compare_event_account_and_mode():
    def matches(payload, **filters) -> bool:
        return match_filters(STRIPE.filters, filters, parsed(payload)).matched

    assert matches(INVOICE, events=["invoice.*"], modes="live", statuses="open")
    assert not matches(INVOICE, modes="test")
    assert matches(THIN, accounts="acct_*") and not matches(INVOICE, accounts="acct_*")
