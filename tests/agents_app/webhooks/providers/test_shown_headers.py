"""One rule says which headers are credentials: those are neither stored nor shown."""

import pytest

from agents_app.webhooks.providers import HIDDEN, is_credential, visible_headers

CREDENTIALS = (
    *("authorization", "proxy-authorization", "x-authorization", "cookie", "x-gitlab-token"),
    *("x-api-key", "x-apikey", "x-hook-secret", "x-auth", "x-auth-user", "x-password"),
    *("x-oauth-key", "x-amz-credential"),
)
PLAIN = (
    *("content-type", "x-github-event", "x-github-delivery", "user-agent", "x-author"),
    *("x-signature-timestamp", "x-slack-request-timestamp", "x-token-timestamp"),
)


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_is_neither_stored_nor_shown(name: str):
    assert is_credential(name)
    assert visible_headers({name: "x"}, {}) == {name: HIDDEN}


@pytest.mark.parametrize("name", PLAIN)
def test_a_header_without_a_secret_is_stored_and_shown(name: str):
    assert not is_credential(name)
    assert visible_headers({name: "x"}, {}) == {name: "x"}


@pytest.mark.parametrize("name", ["x-hub-signature-256", "webhook-signature", "x-own"])
def test_a_signature_is_stored_but_not_shown(name: str):
    assert not is_credential(name)
    assert visible_headers({name: "x"}, {"header": "X-Own"}) == {name: HIDDEN}
