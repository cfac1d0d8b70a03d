"""A payload tested against the filters: the page lists the agents it would start, starts none."""

import json
from typing import Any

import pytest
from django.test import Client

from agents_app.admin.delivery_body import LONGEST
from agents_app.models import Delivery, RunEvent, WorkItem
from agents_app.webhooks.delivery_rows import MOST_DECISIONS
from agents_app.webhooks.dry_run import DryRun
from agents_app.webhooks.providers import Decision, MatchResult
from tests.agents_app.admin.test_webhooks import received
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, source, subscribe

TEST = "/admin/deliveries/test/"
EVENT = "X-GitHub-Event: issues"


def tried(client: Client, target: str, headers: str = EVENT, body: str = "") -> Any:
    values = {"target": target, "headers": headers, "body": body or json.dumps(ISSUE)}
    response = client.post(TEST, values)
    assert response.status_code == 200
    return response


def outcomes(response: Any) -> list[tuple[str, str]]:
    return [(trial.source, trial.match.outcome) for trial, _ in response.context["results"]]


def test_each_agent_is_matched_or_told_which_filter_is_not_met(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    subscribe(fleet.agent, "wants", events=["issues"])
    subscribe(fleet.agent, "other", labels=["bug"])
    response = tried(boss, f"source:{gh.pk}")
    assert outcomes(response) == [("gh", "matched")]
    shown = response.content.decode()
    assert "<code>labels</code> expected" in shown
    assert '<span class="dv-got">nothing</span>' in shown
    assert "It broke" in shown


def test_as_many_agents_are_listed_as_of_a_delivery_that_is_stored():
    decisions = tuple(Decision(n, f"agent-{n}") for n in range(MOST_DECISIONS + 1))
    trial = DryRun("gh", "github", MatchResult("matched", decisions=decisions))
    assert len(trial.decisions) == MOST_DECISIONS


def test_nothing_is_stored_and_nothing_runs(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    subscribe(fleet.agent)
    tried(boss, f"source:{gh.pk}")
    assert not WorkItem.objects.exists()
    assert not Delivery.objects.exists()
    assert not RunEvent.objects.exists()


def test_a_provider_stands_for_all_its_sources_or_for_none(boss: Client, fleet: Fleet):
    assert outcomes(tried(boss, "provider:github")) == [("", "unmatched")]
    source(fleet.tenant, "one")
    source(fleet.tenant, "two")
    subscribe(fleet.agent, source="two")
    assert outcomes(tried(boss, "provider:github")) == [("one", "unmatched"), ("two", "matched")]


def test_a_missing_event_header_is_pointed_out(boss: Client, fleet: Fleet):
    gh = source(fleet.tenant)
    shown = tried(boss, f"source:{gh.pk}", headers="").content.decode()
    assert "the event in the header x-github-event" in shown


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"headers": "no colon here"}, "Line 1: expected NAME: VALUE"),
        ({"target": "source:999"}, "Select a valid choice"),
        ({"body": ""}, "This field is required"),
    ],
)
def test_what_cannot_be_tried_is_said_beside_the_field(
    boss: Client, values: dict[str, str], said: str
):
    asked = {"target": "provider:github", "headers": EVENT, "body": "{}", **values}
    response = boss.post(TEST, asked)
    assert said in response.content.decode()
    assert response.context["results"] == []


def test_a_body_that_is_no_json_says_so_and_is_shown_as_text(boss: Client):
    shown = tried(boss, "provider:github", body="<script>alert(1)</script>").content.decode()
    assert "The body is not valid JSON" in shown
    assert "<script>alert" not in shown


def test_the_form_begins_with_a_delivery_that_was_stored(boss: Client, fleet: Fleet):
    delivery = received(fleet)
    initial = boss.get(TEST, {"delivery": delivery.pk}).context["form"].initial
    assert initial["target"] == f"source:{delivery.source_id}"
    assert initial["headers"] == "x-github-event: issues"
    assert json.loads(initial["body"]) == {**ISSUE, "sent": 1}
    for nothing in ("999999", "x", "9" * 40):
        assert boss.get(TEST, {"delivery": nothing}).context["form"].initial == {}


def test_a_delivery_too_big_to_be_typed_is_not_put_into_the_form(boss: Client, fleet: Fleet):
    delivery = received(fleet, json.dumps({"a": "x" * LONGEST}).encode())
    assert boss.get(TEST, {"delivery": delivery.pk}).context["form"].initial == {}


def test_a_user_who_may_see_deliveries_may_test_a_payload(
    visitor: Client, client: Client, fleet: Fleet
):
    gh = source(fleet.tenant)
    assert outcomes(tried(visitor, f"source:{gh.pk}")) == [("gh", "unmatched")]
    assert client.get(TEST)["Location"].startswith("/admin/login/")
