"""Who is let in: several secrets, old ones, none, and what providers ask for first."""

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
from tests.gateway_app.posting import ISSUE, SECRET, Door, Post, signed, source

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def tenant(transactional_db) -> Tenant:
    return Fleet(Tenant.objects.create(name="default")).tenant


def post_of(request: signing.Signed, path: str) -> Post:
    return Post(path, request.body, request.headers)


@pytest.mark.fault("F68")
def test_while_secrets_change_both_count_and_afterwards_only_the_new_one(tenant):
    gh = source(tenant, secret_refs=[])
    old = sources.add_secret(gh, "old", SECRET, "ann", NOW)
    sources.add_secret(gh, "new", "another secret", "ann", NOW)
    assert Door().one(signed(ISSUE, 1)).status == 200
    assert Door().one(signed(ISSUE, 2, secret="another secret")).status == 200
    assert sources.revoke_secret(old, "ann", NOW)
    assert Door().one(signed(ISSUE, 3)).status == 401
    assert Door().one(signed(ISSUE, 4, secret="another secret")).status == 200
    assert list(Delivery.objects.values_list("signed_by", flat=True)) == ["old", "new", "new"]
    names = ["webhook.secret_added", "webhook.secret_added", "webhook.secret_revoked"]
    assert list(RunEvent.objects.values_list("name", flat=True)) == names


def test_no_secret_can_be_read_from_the_rows(tenant):
    sources.add_secret(source(tenant, secret_refs=[]), "main", SECRET, "ann", NOW)
    for model in (WebhookSecret, WebhookSource, RunEvent):
        assert SECRET not in str(list(model.objects.values()))


def test_a_name_is_taken_until_its_secret_is_revoked(tenant):
    gh = source(tenant, secret_refs=[])
    first = sources.add_secret(gh, "main", SECRET, "ann", NOW)
    with pytest.raises(Refused, match="choose another name"):
        sources.add_secret(gh, "main", "another secret", "ann", NOW)
    sources.revoke_secret(first, "ann", NOW)
    sources.add_secret(gh, "main", "another secret", "ann", NOW)


def test_a_secret_moved_into_another_tenants_row_opens_nothing(tenant):
    gh = source(tenant, secret_refs=[])
    secret = sources.add_secret(gh, "main", SECRET, "ann", NOW)
    mallory = Tenant.objects.create(name="mallory")
    WebhookSecret.objects.filter(pk=secret.pk).update(tenant=mallory, source=source(mallory, "x"))
    assert Door().one(signed(ISSUE)).status == 401


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
    assert Door().one(signed(ISSUE)).status == 200
    monkeypatch.delenv("DROVER_CREDENTIAL_KEYS")
    keys.cache_clear()


def test_a_credential_that_runs_are_given_may_be_the_secret_as_well(tenant):
    """Guard: only of its own tenant, and only while it is there."""
    source(tenant, secret_refs=[], credential="hook_key:main")
    mallory = Tenant.objects.create(name="mallory")
    set_credential(mallory, Name("hook_key", "main"), {"value": SECRET}, "mallory", NOW)
    assert Door().one(signed(ISSUE)).status == 401
    set_credential(tenant, Name("hook_key", "main"), {"value": SECRET}, "ann", NOW)
    assert Door().one(signed(ISSUE)).status == 200
    remove_credential(tenant.credentials.get(), "ann", NOW)
    assert Door().one(signed(ISSUE, 2)).status == 401


def test_a_secret_may_lie_in_a_file_of_the_project(tenant, tmp_path):
    (tmp_path / "hook").write_text(f"{SECRET}\n")
    source(tenant, secret_refs=[f"file:{tmp_path / 'hook'}"])
    assert Door().one(signed(ISSUE)).status == 200


@pytest.mark.parametrize("refs", [["env:NOT_THERE"], ["file:not-there"], []])
def test_without_a_secret_nobody_gets_in(tenant, refs):
    source(tenant, secret_refs=refs)
    assert Door().one(signed(ISSUE, secret="")).status == 401
    assert Door().one(Post(body=b"{}")).status == 401


def test_unsigned_ones_get_in_only_where_that_was_asked_for(tenant):
    source(tenant, secret_refs=[], allow_unsigned=True)
    assert Door().one(Post(body=json.dumps(ISSUE).encode())).status == 200


def test_a_secret_that_is_missing_does_not_let_unsigned_ones_in(tenant):
    source(tenant, secret_refs=["env:NOT_THERE"], allow_unsigned=True)
    assert Door().one(Post(body=json.dumps(ISSUE).encode())).status == 401


def test_the_provider_for_trials_needs_leave_to_let_in_everybody(tenant):
    source(tenant, type="test", secret_refs=[])
    assert Door().one(Post("/webhooks/test", b"{}")).status == 404
    WebhookSource.objects.update(allow_unsigned=True)
    assert Door().one(Post("/webhooks/test", b"{}")).status == 200


def test_a_generic_source_may_have_its_secret_in_the_path(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", "in-the-path")
    source(tenant, "any", type="generic", options={"secret_in_path": True})
    door = Door()
    body = b'{"event": "done"}'
    assert door.one(Post("/webhooks/generic/any/in-the-path", body)).status == 200
    assert door.one(Post("/webhooks/generic/any/something-else", body)).status == 401
    assert door.one(Post("/webhooks/generic/any", body)).status == 401
    assert "in-the-path" not in str(list(Delivery.objects.values()))


def test_slacks_challenge_is_answered_only_when_it_is_signed(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.SECRET)
    source(tenant, "chat", type="slack")
    door = Door()
    door.now = signing.NOW
    body = signing.body_of({"type": "url_verification", "challenge": "abc"})
    assert door.one(Post("/webhooks/slack", body)).status == 401
    answer = door.one(post_of(signing.slack(body), "/webhooks/slack"))
    assert (answer.status, answer.content) == (200, {"challenge": "abc"})
    assert not Delivery.objects.exists()


def test_discords_ping_is_answered_only_when_it_is_signed(tenant, monkeypatch):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.ed25519_public(signing.SEED).hex())
    source(tenant, "chat", type="discord")
    door = Door()
    door.now = signing.NOW
    ping = signing.discord(signing.body_of({"type": 1}))
    assert door.one(post_of(ping, "/webhooks/discord")).content == {"type": 1}
    forged = signing.discord(signing.body_of({"type": 1}), seed=bytes(32))
    assert door.one(post_of(forged, "/webhooks/discord")).status == 401


@pytest.mark.parametrize("seconds", [301, -301])
@pytest.mark.fault("F65")
def test_an_old_or_future_signature_is_refused(tenant, monkeypatch, seconds):
    monkeypatch.setenv("TEST_HOOK_SECRET", signing.ed25519_public(signing.SEED).hex())
    source(tenant, "chat", type="discord")
    door = Door()
    door.now = signing.NOW + timedelta(seconds=seconds)
    late = door.one(post_of(signing.discord(signing.body_of({"type": 2})), "/webhooks/discord"))
    assert (late.status, late.content["error"]["code"]) == (401, "stale")
    assert door.app.intake.refused == {("discord", "stale"): 1}


def test_a_source_whose_settings_make_no_sense_is_not_there(tenant):
    source(tenant, "any", type="generic", options={"header": 3})
    source(tenant, "odd", type="nonsense")
    assert Door().one(Post("/webhooks/generic/any", b"{}")).status == 404
    assert Door().one(Post("/webhooks/nonsense/odd", b"{}")).status == 404
