"""/v1/audit: JSON lines about what people and programs did, of the caller's tenant only."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from agents_app.events import journal
from tests.agents_app.fleet import NOON, Fleet
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


def test_the_time_of_a_line_is_accepted_as_a_limit(fleet: Fleet, admin: Api):
    admin.post("/tokens", {"name": "new"})
    last = lines(admin)[-1]
    assert last in lines(admin, since=last["at"])
    assert last not in lines(admin, until=last["at"])
    assert lines(admin, until="1e3") == []


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize(
    "text", ["nonsense", "2026-13-02T12:00:00Z", "2026-03-02", "20260302T", "nan", "1e999", " "]
)
def test_a_limit_that_is_no_time_is_refused_with_an_example(
    fleet: Fleet, admin: Api, name: str, text: str
):
    reply = admin.get("/audit", **{name: text})
    expected = "expected a time such as 2026-11-18T08:00:00Z, or seconds since 1970"
    assert (reply.status, reply.message) == (400, f"{name}: {expected}")


def test_a_time_without_its_time_zone_is_refused(fleet: Fleet, admin: Api):
    reply = admin.get("/audit", since="2026-03-02T12:00:00")
    assert (reply.status, "needs its time zone" in reply.message) == (400, True)


def test_pages_have_each_entry_once_although_many_have_one_time(
    fleet: Fleet, others: Fleet, admin: Api
):
    paused = journal.JournalEntry("agent.paused", NOON, fleet.tenant.pk, actor="ann")
    journal.record(*[paused] * 12)
    user = User.objects.create_user("ann")
    for number in range(5):
        LogEntry.objects.create(
            user=user,
            content_type=ContentType.objects.get_for_model(User),
            object_id=str(number),
            action_flag=2,
            action_time=NOON,
        )
    # With a greater id and an earlier time.
    yesterday = NOON - timedelta(days=1)
    journal.record(journal.JournalEntry("agent.resumed", yesterday, fleet.tenant.pk, actor="ann"))
    found: list[str] = []
    while page := lines(admin, limit=3, after=found[-1] if found else ""):
        found += [line["id"] for line in page]
    everything = lines(admin)
    assert found == [line["id"] for line in everything]
    assert len(set(found)) == len(found) >= 18
    assert everything == sorted(everything, key=lambda line: line["at"])
    for wrong in ("event-0", "event-x", "login-1", "x", f"event-{10**30}"):
        assert admin.get("/audit", after=wrong).status == 404
    assert api_of(others.tenant, "admin").get("/audit", after=found[0]).status == 404
