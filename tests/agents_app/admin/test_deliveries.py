"""Deliveries in the admin: content, the decision for each agent, and replays."""

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.admin import deliveries as subject
from agents_app.admin.delivery_body import LONGEST, shown_body
from agents_app.models import Delivery, Run, RunEvent, WorkItem
from tests.agents_app.admin.test_webhooks import act, page, received
from tests.agents_app.fleet import Fleet
from tests.gateway_app.posting import ISSUE, subscribe

LIST = "/admin/deliveries/"

# --- the page -------------------------------------------------------------------------------


def test_a_delivery_is_shown_with_the_filter_that_kept_each_agent_from_it(
    boss: Client, fleet: Fleet
):
    subscribe(fleet.agent, "wants", events=["issues"])
    subscribe(fleet.agent, "other", events=["push"], not_repos=["acme/*"])
    shown = page(boss, received(fleet))
    assert "All filters match" in shown
    assert "<code>events</code> expected" in shown
    assert '<span class="dv-wanted">push</span>, got <span class="dv-got">issues</span>' in shown
    assert '<span class="dv-wanted">not acme/*</span>' in shown
    assert "1 of 2" in boss.get(LIST).content.decode()


def test_of_several_sets_of_filters_each_says_what_it_missed(boss: Client, fleet: Fleet):
    sets = [{"events": ["push"]}, {"evnts": ["issues"]}]
    webhooks = [{"source": "gh", "filters": filters} for filters in sets]
    fleet.agent("picky", webhooks=webhooks)
    shown = page(boss, received(fleet))
    assert "<code>events</code> expected" in shown
    assert "other filters:" in shown
    assert "Unknown filter &#x27;evnts&#x27;; did you mean &#x27;events&#x27;?" in shown


def test_a_row_of_an_older_version_shows_its_reason(boss: Client, fleet: Fleet):
    delivery = received(fleet)
    old = [{"agent": "<old>", "matched": False, "reason": "events: wanted push, got issues"}]
    Delivery.objects.filter(pk=delivery.pk).update(decisions=json.dumps(old))
    shown = page(boss, delivery)
    assert "&lt;old&gt;" in shown and "Events: wanted push, got issues" in shown


def test_what_proved_the_sender_is_not_shown(boss: Client, fleet: Fleet):
    shown = page(boss, received(fleet))
    assert "x-hub-signature-256" in shown and "(not shown)" in shown
    assert "sha256=proof" not in shown


def test_the_page_leads_to_the_work_and_the_runs_it_made(boss: Client, fleet: Fleet):
    subscribe(fleet.agent)
    shown = page(boss, received(fleet))
    item, run = WorkItem.objects.get(), Run.objects.get()
    assert reverse("admin:agents_app_workitem_change", args=[item.pk]) in shown
    assert reverse("admin:agents_app_run_change", args=[run.pk]) in shown


def test_a_delivery_that_matched_no_agent_says_why(boss: Client, fleet: Fleet):
    shown = page(boss, received(fleet))
    assert "No agent subscribes to this source" in shown
    assert "the delivery matched no agent" in shown


def test_a_refused_request_is_shown_with_its_reason_and_is_not_replayed(boss: Client, fleet: Fleet):
    subscribe(fleet.agent)
    delivery = received(fleet)
    WorkItem.objects.all().delete()
    reason = "the signature is missing or wrong (12 bytes from 203.0.113.5)"
    Delivery.objects.update(outcome="refused", reason=reason, body=b"", decisions="[]")
    assert "203.0.113.5" in boss.get(f"{LIST}?outcome__exact=refused").content.decode()
    shown = page(boss, delivery)
    assert "The signature is missing or wrong (12 bytes from 203.0.113.5)" in shown
    assert "its body was not stored" in shown
    assert "No body is stored." in shown and "Download" not in shown
    assert "matched, " not in act(boss, delivery, "replay")
    assert not WorkItem.objects.exists()


def test_many_agents_and_replays_need_no_more_queries(boss: Client, fleet: Fleet):
    subscribe(fleet.agent, "agent-0")
    one = received(fleet)
    with CaptureQueriesContext(connection) as few:
        page(boss, one)
    for number in range(1, 6):
        subscribe(fleet.agent, f"agent-{number}")
    other = received(fleet, number=2)
    act(boss, other, "replay")
    with CaptureQueriesContext(connection) as many:
        page(boss, other)
    assert len(many) == len(few)
    assert WorkItem.objects.count() == 13


# --- the body -------------------------------------------------------------------------------


def test_the_body_is_shown_indented_and_as_it_came(boss: Client, fleet: Fleet):
    shown = page(boss, received(fleet))
    assert "&quot;title&quot;: &quot;It broke&quot;,\n    &quot;user&quot;" in shown
    assert "Raw" in shown


def test_hostile_bytes_are_shown_as_harmless_text(boss: Client, fleet: Fleet):
    shown = page(boss, received(fleet, b"<script>alert(1)</script>\x1b]52;c;x\x07\x00\xff"))
    assert "<script>alert" not in shown and "\x1b" not in shown
    assert "The body is not valid JSON" in shown


def test_a_big_body_is_cut_and_can_be_had_whole(boss: Client, visitor: Client, fleet: Fleet):
    body = json.dumps({"a": "x" * LONGEST}).encode()
    delivery = received(fleet, body)
    shown = page(boss, delivery)
    assert "9 bytes more not shown" in " ".join(shown.replace("\xa0", " ").split())
    assert len(shown) < 2 * LONGEST
    answer = visitor.get(f"{LIST}{delivery.pk}/body/")
    assert answer.content == body
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert boss.get(f"{LIST}{delivery.pk + 1}/body/").status_code == 404


def test_indenting_makes_no_megabytes_of_little():
    nested_list = b"[" * 900 + b"1," * 20_000 + b"1" + b"]" * 900
    assert shown_body({}, nested_list).indented == ""
    assert shown_body({}, b"[1]").indented == "[\n  1\n]"


def test_a_payload_in_a_form_is_shown_as_the_json_it_is():
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert shown_body(headers, b"payload=%7B%22a%22%3A1%7D").indented == '{\n  "a": 1\n}'


# --- replaying ------------------------------------------------------------------------------


def test_a_delivery_is_replayed_with_a_button(boss: Client, fleet: Fleet):
    delivery = received(fleet)
    subscribe(fleet.agent)
    assert "1 matched, 0 skipped" in act(boss, delivery, "replay")
    assert WorkItem.objects.get().requested_by == f"ann, replay 1 of delivery {delivery.pk}"
    assert "replayed 1 x" in boss.get(LIST).content.decode()


def replay_selected(client: Client, *chosen: Delivery) -> str:
    keys = [delivery.pk for delivery in chosen]
    asked = {"action": "replay_selected", "_selected_action": keys}
    return client.post(LIST, asked, follow=True).content.decode()


def test_several_are_replayed_from_the_list_and_each_is_in_the_journal(boss: Client, fleet: Fleet):
    chosen = [received(fleet, number=number) for number in range(3)]
    subscribe(fleet.agent)
    assert replay_selected(boss, *chosen).count(" replayed: 1 matched") == 3
    noted = RunEvent.objects.filter(name="delivery.replayed").order_by("pk")
    about = [event.detail for event in noted]
    assert sorted(about) == [f"ann: delivery {each.pk}, 1 matched" for each in chosen]


def test_too_many_at_once_are_refused_and_nothing_is_replayed(
    boss: Client, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(subject, "MOST_AT_ONCE", 1)
    chosen = [received(fleet, number=number) for number in range(2)]
    assert "select at most 1" in replay_selected(boss, *chosen)
    assert not Delivery.objects.filter(replays__gt=0).exists()


def test_a_read_only_user_replays_nothing(visitor: Client, fleet: Fleet):
    delivery = received(fleet)
    url = reverse("admin:agents_app_delivery_act", args=[delivery.pk, "replay"])
    assert visitor.post(url).status_code == 403
    replay_selected(visitor, delivery)
    assert not Delivery.objects.filter(replays__gt=0).exists()
    assert "Replay</button>" not in page(visitor, delivery)


def test_the_list_follows_what_arrives(boss: Client, fleet: Fleet):
    assert 'data-events="work run delivery"' in boss.get(LIST).content.decode()
    assert json.loads(received(fleet).context)["title"] == ISSUE["issue"]["title"]  # type: ignore[index]
