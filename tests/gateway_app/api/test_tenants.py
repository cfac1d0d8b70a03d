"""/v1/tenants and /v1/tokens: an operator manages all tenants, other admins their own."""

import time
from datetime import UTC, datetime

import pytest
from django.apps import apps
from django.test import Client

from agents_app.models import ApiToken, Run, RunEvent, Tenant
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of
from tests.gateway_app.api.tenant_objects import create_objects


@pytest.fixture
def their_admin(others: Fleet) -> Api:
    return api_of(others.tenant, "admin", "theirs")


def test_a_new_tenant_has_a_valid_token(fleet: Fleet, admin: Api):
    made = admin.post("/tenants", {"name": "acme"})
    assert made.status == 201
    assert (made.json["name"], made.json["state"]) == ("acme", "enabled")
    token = made.json["token"]
    assert (token["scope"], token["name"]) == ("admin", "first")
    theirs = Api(token["token"])
    assert theirs.get("/agents").json["agents"] == []
    assert [tenant["name"] for tenant in theirs.get("/tenants").json["tenants"]] == ["acme"]
    names = [tenant["name"] for tenant in admin.get("/tenants").json["tenants"]]
    assert names == ["acme", "default"]


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "a--b", "x" * 65, "\N{SNOWMAN}"])
def test_an_invalid_tenant_name_is_refused(fleet: Fleet, admin: Api, name: str):
    assert admin.post("/tenants", {"name": name}).status == 400
    assert Tenant.objects.count() == 1


def test_the_name_of_an_existing_tenant_is_refused(fleet: Fleet, others: Fleet, admin: Api):
    for name in ("acme", "default"):
        assert admin.post("/tenants", {"name": name}).status == 409


def test_a_tenant_is_disabled_and_enabled(others: Fleet, admin: Api, their_admin: Api):
    assert admin.post("/tenants/acme/disable").json["state"] == "disabled"
    assert their_admin.get("/agents").status == 403
    assert admin.get("/tenants/acme").json["disabled_at"] is not None
    assert admin.post("/tenants/acme/enable").json["state"] == "enabled"
    assert their_admin.get("/agents").status == 200
    entries = RunEvent.objects.filter(tenant=others.tenant).exclude(name="token.created")
    assert [(event.name, event.detail) for event in entries.order_by("pk")] == [
        ("tenant.disabled", "token root"),
        ("tenant.enabled", "token root"),
    ]


def test_rotating_replaces_every_token_also_the_one_in_use(others: Fleet, their_admin: Api):
    api_of(others.tenant, "read", "second")
    made = their_admin.post("/tenants/acme/rotate").json["tokens"]
    assert [(token["name"], token["scope"]) for token in made] == [
        ("theirs", "admin"),
        ("second", "read"),
    ]
    assert their_admin.get("/agents").status == 401
    assert Api(made[0]["token"]).get("/tokens").status == 200
    assert Api(made[1]["token"]).get("/tokens").status == 403


def test_a_tenant_is_deleted_with_all_its_objects(fleet: Fleet, others: Fleet, admin: Api):
    create_objects(fleet, "kept")
    theirs = create_objects(others, "gone")
    Run.objects.filter(tenant=others.tenant).update(state="stopped", slot=None)
    tables = [m for m in apps.get_models() if any(f.name == "tenant" for f in m._meta.fields)]
    kept = {m: m._default_manager.filter(tenant=fleet.tenant).count() for m in tables}
    assert len(tables) >= 10
    assert admin.delete("/tenants/acme").json == {"deleted": True}
    assert admin.get("/tenants/acme").status == 404
    for model in tables:
        left = model._default_manager.filter(tenant_id=theirs.agent.tenant_id)
        assert not left.exists(), model
        # The deletion is recorded in the journal of the default tenant.
        more = 1 if model is RunEvent else 0
        mine = model._default_manager.filter(tenant=fleet.tenant)
        assert mine.count() == kept[model] + more, model
    assert RunEvent.objects.get(name="tenant.deleted").detail == "acme: token root"


def test_a_tenant_whose_runs_have_not_ended_is_not_deleted_yet(others: Fleet, admin: Api):
    job = others.start(others.enqueue(others.agent()))
    reply = admin.delete("/tenants/acme")
    assert (reply.status, reply.message) == (409, "a run is still ending: ask again in a moment")
    assert admin.get("/tenants/acme").json["state"] == "disabled"
    others.finish(job, "stopped")
    assert admin.delete("/tenants/acme").status == 200


def test_an_operator_cannot_disable_or_delete_its_own_tenant(fleet: Fleet, admin: Api):
    for reply in (admin.post("/tenants/default/disable"), admin.delete("/tenants/default")):
        assert reply.status == 409
    assert admin.get("/agents").status == 200


def test_an_admin_of_another_tenant_cannot_change_tenants(fleet: Fleet, their_admin: Api):
    refused = [
        their_admin.post("/tenants", {"name": "more"}),
        their_admin.post("/tenants/acme/disable"),
        their_admin.post("/tenants/acme/enable"),
        their_admin.delete("/tenants/acme"),
    ]
    assert [reply.status for reply in refused] == [403] * 4
    for path in ("disable", "enable", "rotate"):
        assert their_admin.post(f"/tenants/default/{path}").message == "there is no such tenant"
    assert Tenant.objects.filter(disabled_at__isnull=True).count() == 2


# --- tokens ---------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_stored_as_a_hash(fleet: Fleet, admin: Api):
    made = admin.post("/tokens", {"name": "ci", "scope": "operate"})
    assert made.status == 201
    secret = made.json.pop("token")
    assert secret.startswith("drover_") and len(secret) > 40
    listed = admin.get("/tokens")
    assert made.json in listed.json["tokens"]
    assert secret not in listed.response.content.decode()
    assert secret not in str(list(ApiToken.objects.values()))
    assert Api(secret).get("/agents").status == 200


def test_a_token_without_a_given_scope_has_the_scope_read(fleet: Fleet, admin: Api):
    assert admin.post("/tokens", {"name": "x"}).json["scope"] == "read"
    assert admin.post("/tokens", {"name": "x", "scope": "root"}).status == 400
    assert admin.post("/tokens", {"name": " "}).status == 409


def test_a_token_with_an_expiry_is_refused_from_then_on(fleet: Fleet, admin: Api):
    later = int(time.time()) + 3600
    made = admin.post("/tokens", {"name": "ci", "expires_at": later}).json
    assert (made["expires_at"], made["addresses"]) == (later, [])
    assert Api(made["token"]).get("/agents").status == 200
    ApiToken.objects.filter(pk=made["id"]).update(expires_at=datetime.now(UTC))
    assert Api(made["token"]).get("/agents").status == 401
    assert admin.post("/tokens", {"name": "x", "expires_at": 1}).status == 409


def test_a_token_with_addresses_is_refused_from_others(fleet: Fleet, admin: Api):
    body = {"name": "ci", "addresses": ["203.0.113.0/24", "2001:db8::1"]}
    made = admin.post("/tokens", body).json
    assert made["addresses"] == ["203.0.113.0/24", "2001:db8::1/128"]
    reply = Api(made["token"]).get("/agents")
    assert (reply.status, reply.message) == (
        403,
        "this token may not be used from the address 127.0.0.1",
    )
    for address, status in (("203.0.113.9", 200), ("2001:db8::1", 200), ("203.0.114.1", 403)):
        client = Client(REMOTE_ADDR=address)
        assert Api(made["token"], client).get("/agents").status == status, address
    # A header cannot change the address.
    forged = Api(made["token"])
    forged.headers["X-Forwarded-For"] = "203.0.113.9"
    assert forged.get("/agents").status == 403
    assert admin.post("/tokens", {"name": "x", "addresses": ["here"]}).status == 409


def test_a_revoked_token_stays_in_the_list(fleet: Fleet, admin: Api):
    made = admin.post("/tokens", {"name": "ci"}).json
    assert admin.delete(f"/tokens/{made['id']}").json == {"revoked": True}
    assert Api(made["token"]).get("/agents").status == 401
    (newest, *_) = admin.get("/tokens").json["tokens"]
    assert newest["revoked_at"] is not None
    assert admin.delete(f"/tokens/{made['id']}").status == 200
    entries = RunEvent.objects.filter(name="token.revoked")
    assert [event.detail for event in entries] == ["token root: ci"]
