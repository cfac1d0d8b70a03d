"""Webhook sources in the admin: secrets are stored and never shown."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.models import Delivery, RunEvent, WebhookSecret, WebhookSource
from agents_app.webhooks import deliveries
from agents_app.webhooks.providers import RawDelivery
from agents_app.webhooks.source_index import SourceIndex, read_source_index
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.posting import ISSUE, SECRET, source

ADD = "admin:agents_app_webhooksource_add"


def form(fleet: Fleet, **values: object) -> dict[str, object]:
    return {"tenant": fleet.tenant.pk, "name": "gh", "type": "github", "options": "{}", **values}


def received(fleet: Fleet, body: bytes = b"", number: int = 1) -> Delivery:
    """The first one makes the source, too."""
    gh = WebhookSource.objects.first() or source(fleet.tenant)
    index: SourceIndex = read_source_index()
    (found,) = index.find("github")
    headers = {"x-github-event": "issues", "x-hub-signature-256": "sha256=proof"}
    # A repeated body is a duplicate.
    numbered = json.dumps({**ISSUE, "sent": number}).encode()
    raw = RawDelivery(headers, body or numbered, f"g-{number}", NOON)
    deliveries.store([deliveries.match_delivery(index, found, raw, "main")], NOON)
    return Delivery.objects.get(source=gh, delivery_id=f"g-{number}")


def act(client: Client, row: object, verb: str) -> str:
    name = type(row).__name__.lower()
    url = reverse(f"admin:agents_app_{name}_act", args=[row.pk, verb])  # type: ignore[attr-defined]
    return client.post(url, follow=True).content.decode()


def page(client: Client, row: object) -> str:
    name = type(row).__name__.lower()
    url = reverse(f"admin:agents_app_{name}_change", args=[row.pk])  # type: ignore[attr-defined]
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_source_is_made_with_a_secret_that_is_never_shown_again(boss: Client, fleet: Fleet):
    values = form(fleet, new_secret=SECRET, new_secret_name="main")
    assert boss.post(reverse(ADD), values).status_code == 302
    made, secret = WebhookSource.objects.get(), WebhookSecret.objects.get()
    assert read_source_index().find("github", "gh")[0].secrets == {"main": SECRET}
    for shown in (page(boss, made), page(boss, secret)):
        assert "main" in shown
        assert SECRET not in shown and "Everybody" not in shown and secret.sealed not in shown
    noted = set(RunEvent.objects.values_list("name", flat=True))
    assert noted == {"webhook.source_saved", "webhook.secret_added"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "a b"}, "Use letters, digits"),
        ({"type": "test"}, "Select a valid choice"),
        ({"options": '{"header": 1}', "type": "generic"}, "must be text"),
        ({"options": '{"hedder": "x"}', "type": "generic"}, "did you mean"),
        ({"options": "[1]"}, "Enter a JSON object"),
        ({"new_secret": "short", "new_secret_name": "x"}, "Enter at least 8 characters"),
        ({"new_secret": SECRET}, "Enter a name for the secret"),
    ],
)
def test_what_makes_no_sense_is_refused_without_repeating_secrets(
    boss: Client, fleet: Fleet, values: dict[str, str], said: str
):
    shown = boss.post(reverse(ADD), form(fleet, **values)).content.decode()
    assert said in shown
    assert "Everybody" not in shown
    assert not WebhookSource.objects.exists()


def test_a_source_of_the_file_gets_secrets_here_and_nothing_else(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant, origin="file", secret_refs=[])
    url = reverse("admin:agents_app_webhooksource_change", args=[gh.pk])
    values = form(fleet, type="slack", new_secret=SECRET, new_secret_name="main")
    assert boss.post(url, values).status_code == 302
    gh.refresh_from_db()
    assert gh.type == "github"
    assert gh.secrets.count() == 1


def test_a_secret_is_revoked_with_a_button(boss: Client, fleet: Fleet):
    boss.post(reverse(ADD), form(fleet, new_secret=SECRET, new_secret_name="main"))
    secret = WebhookSecret.objects.get()
    assert "main of" in act(boss, secret, "revoke")
    assert read_source_index().find("github")[0].secrets == {}
    assert "already revoked" in act(boss, secret, "revoke")


def test_a_source_is_switched_off_and_on(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    act(boss, gh, "disable")
    assert read_source_index().sources == ()
    act(boss, gh, "enable")
    assert len(read_source_index().sources) == 1


@pytest.mark.parametrize("noun", ["delivery", "webhooksource", "webhooksecret"])
def test_a_read_only_user_sees_an_empty_list(visitor: Client, noun: str):
    assert visitor.get(reverse(f"admin:agents_app_{noun}_changelist")).status_code == 200


def test_a_read_only_user_changes_nothing(visitor: Client, fleet: Fleet):
    delivery = received(fleet)
    url = reverse("admin:agents_app_delivery_act", args=[delivery.pk, "replay"])
    assert visitor.post(url).status_code == 403
    assert visitor.get(reverse(ADD)).status_code == 403
    page(visitor, delivery)
    page(visitor, delivery.source)


def test_the_pages_of_a_source_and_of_its_agent_have_the_url_to_copy(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    agent = fleet.agent(webhooks=[{"source": gh.name}])
    copied = f"<code>http://testserver/webhooks/github/{gh.name}</code>"
    for shown in (page(boss, gh), page(boss, agent)):
        assert copied in shown and "data-copy" in shown


def test_a_source_without_secrets_says_what_happens_to_its_deliveries(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    WebhookSource.objects.update(secret_refs=[])
    assert "all deliveries are refused" in page(boss, gh)
    WebhookSource.objects.update(allow_unsigned=True)
    shown = page(boss, gh)
    assert "Unsigned deliveries are accepted" in shown
    assert "all deliveries are refused" not in shown
