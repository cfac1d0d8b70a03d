"""Pages of API tokens: a token is shown once, its limits are checked, and it can be revoked."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.accounts.tokens import create_token, find_token
from agents_app.admin.base import utc_now
from agents_app.models import ApiToken, RunEvent
from tests.agents_app.admin.visitors import who_may
from tests.agents_app.fleet import NOON, Fleet

ADD = "/admin/api-tokens/add/"


def form(fleet: Fleet, **changes: str) -> dict[str, object]:
    return {"tenant": fleet.tenant.pk, "name": "ci", "scope": "operate", **changes}


def test_a_new_token_is_shown_once(boss: Client, fleet: Fleet):
    page = boss.post(ADD, form(fleet, expires="in 30 days", places="10.0.0.0/8, 203.0.113.7"))
    assert page.status_code == 200
    [secret] = re.findall(r"drover_[A-Za-z0-9_-]{43}", page.content.decode())
    token = find_token(secret, utc_now())
    assert token is not None and token.addresses == ["10.0.0.0/8", "203.0.113.7/32"]
    assert token.expires_at is not None and (token.expires_at - utc_now()).days in {29, 30}
    assert RunEvent.objects.get().detail.startswith("ann: ci (operate, until ")
    assert secret not in f"{page.headers} {page.cookies}"
    for url in ("/admin/api-tokens/", f"/admin/api-tokens/{token.pk}/change/", "/admin/"):
        assert secret not in boss.get(url).content.decode()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expires": "some day"}, "some day"),
        ({"expires": "2020-01-01"}, "Enter a time in the future."),
        ({"places": "here"}, "is not an address or a network"),
        ({"scope": "root"}, "Select a valid choice"),
        ({"name": ""}, "This field is required"),
    ],
)
def test_an_invalid_token_is_refused(boss: Client, fleet: Fleet, changes: dict, said: str):
    page = boss.post(ADD, form(fleet, **changes))
    assert page.status_code == 200 and said in page.content.decode()
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_by_its_button(boss: Client, fleet: Fleet):
    made = create_token(fleet.tenant, "ci", "read", "ann", NOON)
    page = reverse("admin:agents_app_apitoken_change", args=[made.row.pk])
    assert "Revoke" in boss.get(page).content.decode()
    boss.post(reverse("admin:agents_app_apitoken_act", args=[made.row.pk, "revoke"]))
    assert find_token(made.secret, NOON) is None
    assert "revoked" in boss.get("/admin/api-tokens/").content.decode()


def test_a_user_who_may_only_view_tokens_creates_none(fleet: Fleet):
    clerk = who_may("view_apitoken", "change_apitoken")
    assert clerk.get("/admin/api-tokens/").status_code == 200
    assert clerk.post(ADD, form(fleet)).status_code == 403
    assert not ApiToken.objects.exists()
