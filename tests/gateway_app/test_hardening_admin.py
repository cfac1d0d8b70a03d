"""Requests to pages of the admin that no link makes: refused, never a 500."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

import scheduler_project.urls  # noqa: F401  # which finds the pages
from tests.agents_app.admin.visitors import fill
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import token_of

HUGE = str(2**70)


@pytest.fixture
def client(fleet: Fleet, boss: Client) -> Client:
    boss.raise_request_exception = False
    return boss


@pytest.mark.parametrize("table", ["agents_app_agent", "agents_app_run", "auth_user"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("pk__in", HUGE), ("id__exact", HUGE), ("q", "\0"), ("id__exact", "a\0b"), ("p", HUGE)],
)
def test_no_query_of_a_list_is_a_500(client: Client, table: str, name: str, text: str):
    answer = client.get(reverse(f"admin:{table}_changelist"), {name: text})
    assert answer.status_code in {200, 302, 400}


@pytest.mark.parametrize("table", ["agents_app_agent", "agents_app_run"])
@pytest.mark.parametrize("key", [HUGE, "\0", "a\0b", "-1", "[]", "é" * 1000])
def test_no_key_of_a_row_is_a_500(client: Client, table: str, key: str):
    answer = client.get(reverse(f"admin:{table}_change", args=[key]))
    assert answer.status_code in {302, 400, 404}


@pytest.mark.fault("F72")
def test_a_user_without_permission_gets_the_same_response_for_missing_rows(fleet: Fleet):
    """For every table with pages; also with the token of a tenant."""
    fill(fleet)
    nosy = Client()
    nosy.force_login(User.objects.create_user("nosy", is_staff=True))
    token = {"Authorization": f"Bearer {token_of(fleet.tenant, 'admin')}"}
    tables = [m for m in admin.site._registry if m._meta.app_label == "agents_app"]
    rows = {table: table._default_manager.order_by("pk").first() for table in tables}
    assert sum(row is not None for row in rows.values()) > 8
    for table, row in rows.items():
        key, missing = str(row.pk if row else 1), "987654"
        page = f"admin:agents_app_{table._meta.model_name}_change"
        for client, headers in ((Client(), {}), (Client(), token), (nosy, {})):
            known, unknown = (
                client.get(reverse(page, args=[each]), headers=headers) for each in (key, missing)
            )
            assert known.status_code == unknown.status_code == (403 if client is nosy else 302)
            assert known.content == unknown.content
            location = known.headers.get("Location", "").replace(f"/{key}/", f"/{missing}/")
            assert location == unknown.headers.get("Location", ""), table


def test_passwords_cannot_be_guessed_by_filters(client: Client):
    url = reverse("admin:auth_user_changelist")
    assert client.get(url, {"password__startswith": "md5"}).status_code in {302, 400}
