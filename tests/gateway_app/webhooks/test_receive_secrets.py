"""Which requests are accepted: several secrets, revoked ones, none, and challenges."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.fernet import Fernet

from agents_app.errors import Refused
from agents_app.models import Delivery, RunEvent, Tenant, WebhookSecret, WebhookSource
from agents_app.secrets import key_rotation
from agents_app.secrets.credentials import remove_credential, set_credential
from agents_app.secrets.sealing import keys
from agents_app.secrets.types import Name
from agents_app.webhooks import sources
from tests.agents_app.fleet import Fleet
from tests.agents_app.webhooks.providers import signing
from tests.gateway_app.posting import ISSUE, SECRET, Post, WebhookClient, signed, source

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def tenant(transactional_db) -> Tenant:
    return Fleet(Tenant.objects.create(name="default")).tenant


def post_of(request: signing.Signed, path: str) -> Post:
    return Post(path, request.body, request.headers)


@pytest.mark.fault("F68")
def test_two_secrets_are_valid_until_the_old_one_is_revoked(tenant):
    gh = source(tenant, secret_refs=[])
    old = sources.add_secret(gh, "old", SECRET, "ann", NOW)
    sources.add_secret(gh, "new", "another secret", "ann", NOW)
    assert WebhookClient().one(signed(ISSUE, 1)).status == 200
    assert WebhookClient().one(signed(ISSUE, 2, secret="another secret")).status == 200
    assert sources.revoke_secret(old, "ann", NOW)
    assert WebhookClient().one(signed(ISSUE, 3)).status == 401
    assert WebhookClient().one(signed(ISSUE, 4, secret="another secret")).status == 200
    assert list(Delivery.objects.values_list("signed_by", flat=True)) == ["old", "new", "new"]
    names = ["webhook.secret_added", "webhook.secret_added", "webhook.secret_revoked"]
    assert list(RunEvent.objects.values_list("name", flat=True)) == names


def test_no_secret_can_be_read_from_the_rows(tenant):
    sources.add_secret(source(tenant, secret_refs=[]), "main", SECRET, "ann", NOW)
    for model in (WebhookSecret, WebhookSource, RunEvent):
        assert SECRET not in str(list(model.objects.values()))


def test_the_name_of_a_secret_is_in_use_until_the_secret_is_revoked(tenant):
    gh = source(tenant, secret_refs=[])
    first = sources.add_secret(gh, "main", SECRET, "ann", NOW)
    with pytest.raises(Refused, match="choose another name"):
        sources.add_secret(gh, "main", "another secret", "ann", NOW)
    sources.revoke_secret(first, "ann", NOW)
    sources.add_secret(gh, "main", "another secret", "ann", NOW)


def test_a_sealed_secret_in_a_row_of_another_tenant_is_refused(tenant):
    gh = source(tenant, secret_refs=[])
    secret = sources.add_secret(gh, "main", SECRET, "ann", NOW)
    mallory = Tenant.objects.create(name="mallory")
    WebhookSecret.objects.filter(pk=secret.pk).update(tenant=mallory, source=source(mallory, "x"))
    assert WebhookClient().one(signed(ISSUE)).status == 401


def test_after_a_new_key_all_secrets_are_sealed_with_it(tenant, monkeypatch):
    gh = source(tenant, secret_refs=[])
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", old)
    keys.cache_clear()
    sources.add_secret(gh, "main", SECRET, "ann", NOW)
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", f"{new},{old}")
    keys.cache_clear()
    assert key_rotation.reseal_all()["webhook secrets"].done == 1
    assert key_rotation.reseal_all()["webhook secrets"].done == 0
    monkeypatch.setenv("DROVER_CREDENTIAL_KEYS", new)
    keys.cache_clear()
    assert WebhookClient().one(signed(ISSUE)).status == 200
    monkeypatch.delenv("DROVER_CREDENTIAL_KEYS")
    keys.cache_clear()


def test_a_credential_of_runs_may_be_the_secret_of_a_source(tenant):
    """Guard: only a credential of the same tenant, and only until it is removed."""
    source(tenant, secret_refs=[], credential="hook_key:main")
    mallory = Tenant.objects.create(name="mallory")
    set_credential(mallory, Name("hook_key", "main"), {"value": SECRET}, "mallory", NOW)
    assert WebhookClient().one(signed(ISSUE)).status == 401
    set_credential(tenant, Name("hook_key", "main"), {"value": SECRET}, "ann", NOW)
    assert WebhookClient().one(signed(ISSUE)).status == 200
    remove_credential(tenant.credentials.get(), "ann", NOW)
    assert WebhookClient().one(signed(ISSUE, 2)).status == 401


def test_a_secret_may_be_in_a_file_of_the_project(tenant, tmp_path):
    (tmp_path / "hook").write_text(f"{SECRET}\n")
    source(tenant, secret_refs=[f"file:{tmp_path / 'hook'}"])
    assert WebhookClient().one(signed(ISSUE)).status == 200


@pytest.mark.parametrize("refs", [["env:NOT_THERE"], ["file:not-there"], []])
def test_a_source_without_a_secret_accepts_no_delivery(tenant, refs):
    source(tenant, secret_refs=refs)
    assert WebhookClient().one(signed(ISSUE, secret="")).status == 401
    assert WebhookClient().one(Post(body=b"{}")).status == 401


def test_unsigned_deliveries_are_accepted_only_with_allow_unsigned(tenant):
    source(tenant, secret_refs=[], allow_unsigned=True)
    assert WebhookClient().one(Post(body=json.dumps(ISSUE).encode())).status == 200


def test_an_unsigned_source_of_another_tenant_gets_no_deliveries_of_the_first(tenant):
    """Whatever a tenant writes into its config.toml, also while the secret of the first is gone."""
    acme = Tenant.objects.create(name="acme")
    source(acme, secret_refs=[], allow_unsigned=True)
    body = json.dumps(ISSUE).encode()
    assert WebhookClient().one(Post(body=body)).status == 200
    source(tenant, secret_refs=["env:NOT_THERE"])
    for path in ("/webhooks/github/gh", "/webhooks/github"):
        assert WebhookClient().one(Post(path, body)).status == 401
    assert Delivery.objects.filter(tenant=acme).count() == 1


def test_unsigned_deliveries_are_refused_if_a_secret_is_missing(tenant):
    source(tenant, secret_refs=["env:NOT_THERE"], allow_unsigned=True)
    assert WebhookClient().one(Post(body=json.dumps(ISSUE).encode())).status == 401


def test_the_provider_test_needs_allow_unsigned(tenant):
    source(tenant, type="test", secret_refs=[])
    assert WebhookClient().one(Post("/webhooks/test", b"{}")).status == 401
    WebhookSource.objects.update(allow_unsigned=True)
    assert WebhookClient().one(Post("/webhooks/test", b"{}")).status == 200


def test_a_generic_source_may_have_its_secret_in_the_path(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", "in-the-path")
    source(tenant, "any", type="generic", options={"secret_in_path": True})
    client = WebhookClient()
    body = b'{"event": "done"}'
    assert client.one(Post("/webhooks/generic/any/in-the-path", body)).status == 200
    assert client.one(Post("/webhooks/generic/any/something-else", body)).status == 401
    assert client.one(Post("/webhooks/generic/any", body)).status == 401
    assert "in-the-path" not in str(list(Delivery.objects.values()))


def test_a_challenge_of_slack_is_answered_only_if_it_is_signed(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.SECRET)
    source(tenant, "chat", type="slack")
    client = WebhookClient()
    client.now = signing.NOW
    body = signing.body_of({"type": "url_verification", "challenge": "abc"})
    assert client.one(Post("/webhooks/slack", body)).status == 401
    answer = client.one(post_of(signing.slack(body), "/webhooks/slack"))
    assert (answer.status, answer.content) == (200, {"challenge": "abc"})
    assert not Delivery.objects.exists()


def test_a_ping_of_discord_is_answered_only_if_it_is_signed(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.ed25519_public(signing.SEED).hex())
    source(tenant, "chat", type="discord")
    client = WebhookClient()
    client.now = signing.NOW
    ping = signing.discord(signing.body_of({"type": 1}))
    assert client.one(post_of(ping, "/webhooks/discord")).content == {"type": 1}
    forged = signing.discord(signing.body_of({"type": 1}), seed=bytes(32))
    assert client.one(post_of(forged, "/webhooks/discord")).status == 401


@pytest.mark.parametrize("seconds", [301, -301])
@pytest.mark.fault("F65")
def test_an_old_or_future_signature_is_refused(tenant, monkeypatch, seconds):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.ed25519_public(signing.SEED).hex())
    source(tenant, "chat", type="discord")
    client = WebhookClient()
    client.now = signing.NOW + timedelta(seconds=seconds)
    late = client.one(post_of(signing.discord(signing.body_of({"type": 2})), "/webhooks/discord"))
    assert (late.status, late.content["error"]["code"]) == (401, "stale")
    assert client.app.intake.refused == {("discord", "stale"): 1}


def test_a_source_with_invalid_settings_is_refused(tenant):
    source(tenant, "any", type="generic", options={"header": 3})
    source(tenant, "odd", type="nonsense")
    assert WebhookClient().one(Post("/webhooks/generic/any", b"{}")).status == 401
    assert WebhookClient().one(Post("/webhooks/nonsense/odd", b"{}")).status == 401
