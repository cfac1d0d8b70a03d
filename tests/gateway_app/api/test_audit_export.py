"""/v1/audit: JSON lines about what people and programs did, of the caller's tenant only."""

import json
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of


def lines(api: Api, **query: Any) -> list[dict[str, Any]]:
    reply = api.get("/audit", **query)
    assert reply.status == 200, reply.json
    assert reply.response["Content-Type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.response.content.decode().splitlines()]


def test_a_change_is_exported_with_its_author(fleet: Fleet, admin: Api, api: Api):
    fleet.agent()
    api.post("/agents/reporter/pause", {"note": "too loud"})
    line = lines(admin)[-1]
    assert (line["who"], line["what"], line["agent"]) == ("token ci", "agent.paused", "reporter")
    assert (line["tenant"], line["detail"]) == ("default", "token ci: too loud")
    assert line["at"].endswith("Z")


@pytest.mark.parametrize("scope", ["read", "operate"])
def test_only_admins_may_export(fleet: Fleet, scope: str):
    assert api_of(fleet.tenant, scope).get("/audit").status == 403


def test_another_tenant_sees_its_own_changes_and_no_logins(fleet: Fleet, others: Fleet, admin: Api):
    User.objects.create_superuser("ann", password="right")
    Client().post("/admin/login/", {"username": "ann", "password": "right"})
    Client().post("/admin/login/", {"username": "ann", "password": "wrong"})
    theirs = lines(api_of(others.tenant, "admin", "theirs"))
    assert {line["tenant"] for line in theirs} == {"acme"}
    own = lines(admin)
    assert {line["tenant"] for line in own} == {"default"}
    assert {"login.succeeded", "login.failed"} <= {line["what"] for line in own}


def test_the_period_and_the_number_of_lines_are_limited(fleet: Fleet, admin: Api):
    now = time.time()
    for number in range(3):
        admin.post("/tokens", {"name": f"token-{number}"})
    assert len(lines(admin, limit=2)) == 2
    assert len(lines(admin, since=now - 60)) == 3
    assert lines(admin, since=now + 60) == []
    before = lines(admin, until=now - 60)
    assert [line["detail"] for line in before] == ["the test: root (admin)"]
    assert admin.get("/audit", limit=0).status == 400
