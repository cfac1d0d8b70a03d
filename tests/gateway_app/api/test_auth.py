"""Authentication: bearer tokens by scope, or a session of the admin with CSRF; never both."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents_app.models import ApiToken, RunEvent
from gateway_app.access import refuse_unknown_caller
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of, token_of

MISSING = "missing or invalid bearer token"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer ",
        "Bearer unknown-token",
        "Basic dXNlcjpwYXNz",
        "drover_x",
        "Bearer \N{SNOWMAN}",
    ],
)
def test_a_request_without_a_valid_token_is_refused(fleet: Fleet, header: str):
    api = Api()
    if header:
        api.headers = {"Authorization": header}
    reply = api.get("/agents")
    assert (reply.status, reply.message) == (401, MISSING)
    assert reply.response["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_is_refused_from_the_next_request_on(fleet: Fleet, reader: Api):
    assert reader.get("/agents").status == 200
    ApiToken.objects.update(revoked_at=datetime.now(UTC))
    assert reader.get("/agents").status == 401


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [("read", [200, 403, 403]), ("operate", [200, 200, 403]), ("admin", [200, 200, 200])],
)
def test_each_scope_includes_the_ones_below_it(fleet: Fleet, scope: str, allowed: list[int]):
    fleet.agent()
    api = api_of(fleet.tenant, scope)
    replies = [api.get("/agents"), api.post("/agents/reporter/pause"), api.get("/tokens")]
    assert [reply.status for reply in replies] == allowed
    refused = [reply.message for reply in replies if reply.status == 403]
    needed = ["this needs the scope 'operate'", "this needs the scope 'admin'"]
    assert refused == needed[len(needed) - len(refused) :]


def test_the_journal_names_the_token(fleet: Fleet):
    fleet.agent()
    api_of(fleet.tenant, "operate", "nightly build").post("/agents/reporter/pause")
    assert RunEvent.objects.get(name="agent.paused").detail == "token nightly build"


def test_the_tokens_of_a_disabled_tenant_are_refused(fleet: Fleet, others: Fleet, admin: Api):
    api = api_of(others.tenant, "admin")
    assert api.get("/agents").status == 200
    admin.post("/tenants/acme/disable")
    reply = api.get("/agents")
    assert (reply.status, reply.error["code"]) == (403, "tenant_disabled")


# --- the session of the admin ---------------------------------------------------------------


def logged_in(user: User, *, csrf: bool = False) -> Api:
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(user)
    return Api(client=client)


def test_a_session_of_the_admin_acts_for_the_default_tenant(boss: Client, fleet: Fleet):
    fleet.agent()
    api = Api(client=boss)
    assert [agent["name"] for agent in api.get("/agents").json["agents"]] == ["reporter"]
    assert api.get("/tokens").status == 200
    api.post("/agents/reporter/pause")
    assert RunEvent.objects.get(name="agent.paused").detail == "ann"


def test_a_user_with_view_permissions_may_read_but_not_operate(visitor: Client, fleet: Fleet):
    fleet.agent()
    api = Api(client=visitor)
    assert api.get("/agents").status == 200
    assert api.post("/agents/reporter/pause").status == 403


def test_a_user_without_staff_status_is_refused(fleet: Fleet):
    api = logged_in(User.objects.create_user("passer-by", password="secret"))
    assert api.get("/agents").status == 401


def test_a_session_needs_the_csrf_token_for_changes(fleet: Fleet):
    fleet.agent()
    api = logged_in(User.objects.create_superuser("eve", password="secret"), csrf=True)
    assert api.get("/agents").status == 200
    reply = api.post("/agents/reporter/pause")
    assert (reply.status, reply.error["code"]) == (403, "csrf")
    assert not RunEvent.objects.exists()
    page = api.client.get("/v1/docs")
    token = page.content.decode().partition('data-csrf-token="')[2].partition('"')[0]
    assert api.post("/agents/reporter/pause", **{"X_CSRFToken": token}).status == 200


def test_a_request_without_a_session_gets_401_and_not_a_csrf_error(fleet: Fleet):
    api = Api(client=Client(enforce_csrf_checks=True))
    assert api.post("/agents/reporter/pause").status == 401


def test_cookies_are_ignored_with_an_authorization_header(boss: Client, fleet: Fleet):
    assert Api("unknown-token", boss).get("/agents").status == 401
    reader = Api(token_of(fleet.tenant, "read"), boss)
    fleet.agent()
    assert reader.post("/agents/reporter/pause").status == 403


def test_a_response_to_a_token_sets_no_cookie_and_is_not_cached(fleet: Fleet, reader: Api):
    response = reader.get("/agents").response
    assert not response.cookies
    assert response["Cache-Control"] == "no-store"
    assert "Cookie" not in response.get("Vary", "")


# --- before the body is read ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("cookie", "refused"),
    [
        *(("", True), ("theme=dark", True), ("x{name}=1", True), ("theme={name}", True)),
        *(("{name}=1", False), ("theme=dark; {name}=1", False)),
    ],
)
def test_without_a_token_a_small_body_is_read_only_with_the_cookie_of_a_session(
    settings: Any, cookie: str, refused: bool
):
    value = cookie.format(name=settings.SESSION_COOKIE_NAME).encode()
    headers = [(b"cookie", value), (b"content-length", b"10")]
    scope = {"type": "http", "path": "/v1/agents", "headers": headers}
    response = asyncio.run(refuse_unknown_caller(scope))
    assert (response is not None and response.status_code == 401) == refused
