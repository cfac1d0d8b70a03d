"""Credentials in the admin: set, replaced and removed; stored values are never shown."""

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.models import Credential, RunEvent
from agents_app.secrets.store import value_of
from tests.agents_app.fleet import Fleet

CANARY = "canary-of-the-mine-4711"
ADD = "admin:agents_app_credential_add"
LIST = "admin:agents_app_credential_changelist"


def form(fleet: Fleet, **values: object) -> dict[str, object]:
    return {
        "tenant": fleet.tenant.pk,
        "type": "github_token",
        "instance_name": "default",
        "new_value": CANARY,
        **values,
    }


def url_of(credential: Credential) -> str:
    return reverse("admin:agents_app_credential_change", args=[credential.pk])


def test_one_is_set_replaced_and_removed_and_never_shown(boss: Client, fleet: Fleet):
    assert boss.post(reverse(ADD), form(fleet)).status_code == 302
    kept = Credential.objects.get()
    assert value_of(fleet.tenant.pk, "github_token") == CANARY
    for url in (url_of(kept), reverse(LIST)):
        shown = boss.get(url).content.decode()
        assert "github_token" in shown
        assert CANARY not in shown and kept.sealed not in shown
    assert boss.post(url_of(kept), {"new_value": "another-token"}).status_code == 302
    assert value_of(fleet.tenant.pk, "github_token") == "another-token"
    act = reverse("admin:agents_app_credential_act", args=[kept.pk, "remove"])
    assert boss.post(act).status_code == 302
    assert not Credential.objects.exists()
    noted = RunEvent.objects.order_by("pk").values_list("name", flat=True)
    assert list(noted) == ["credential.set", "credential.set", "credential.removed"]


def test_several_fields_are_a_json_object(boss: Client, fleet: Fleet):
    value = f'{{"access_key_id": "AKIA0123456789", "secret_access_key": "{CANARY}"}}'
    assert boss.post(reverse(ADD), form(fleet, type="aws", new_value=value)).status_code == 302
    assert Credential.objects.get().type == "aws"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"new_value": "short"}, "at least 8 characters"),
        ({"type": "a b"}, "is not a valid credential name"),
        ({"type": "path"}, "is reserved"),
        ({"type": "aws"}, "enter a JSON object with the fields access_key_id"),
        ({"new_value": ""}, "This field is required"),
    ],
)
def test_what_is_refused_comes_back_without_the_secret(boss: Client, fleet: Fleet, values, said):
    answer = boss.post(reverse(ADD), form(fleet, **values))
    assert answer.status_code == 200
    shown = answer.content.decode()
    assert said in shown and CANARY not in shown
    assert not Credential.objects.exists()


def test_setting_one_that_is_there_replaces_it(boss: Client, fleet: Fleet):
    boss.post(reverse(ADD), form(fleet))
    assert boss.post(reverse(ADD), form(fleet, new_value="another-token")).status_code == 302
    assert value_of(fleet.tenant.pk, "github_token") == "another-token"
    assert Credential.objects.count() == 1
