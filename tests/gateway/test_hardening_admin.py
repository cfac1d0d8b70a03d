"""Pages of the admin asked for in ways that none of its links has: refused, never a fault."""

import pytest
from django.test import Client
from django.urls import reverse

from tests.agents.fleet import Fleet

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
def test_no_query_of_a_list_is_a_fault(client: Client, table: str, name: str, text: str):
    answer = client.get(reverse(f"admin:{table}_changelist"), {name: text})
    assert answer.status_code in {200, 302, 400}


@pytest.mark.parametrize("table", ["agents_app_agent", "agents_app_run"])
@pytest.mark.parametrize("key", [HUGE, "\0", "a\0b", "-1", "[]", "é" * 1000])
def test_no_key_of_a_row_is_a_fault(client: Client, table: str, key: str):
    answer = client.get(reverse(f"admin:{table}_change", args=[key]))
    assert answer.status_code in {302, 400, 404}


def test_passwords_cannot_be_guessed_by_filters(client: Client):
    url = reverse("admin:auth_user_changelist")
    assert client.get(url, {"password__startswith": "md5"}).status_code in {302, 400}
