"""The commands `deliveries` and `webhook`."""

import json
from pathlib import Path

import pytest

from agents_app.models import Delivery, WebhookSource, WorkItem
from agents_app.webhooks import deliveries
from agents_app.webhooks.providers import RawDelivery
from agents_app.webhooks.source_index import read_source_index
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.management.calling import call

ISSUE = {"action": "opened", "issue": {"number": 7}, "repository": {"full_name": "acme/site"}}


@pytest.fixture
def delivery(durable_fleet: Fleet) -> Delivery:
    fleet = durable_fleet
    WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")
    fleet.agent("wants", webhooks=[{"source": "gh", "filters": {"events": ["issues"]}}])
    fleet.agent("other", webhooks=[{"source": "gh", "filters": {"events": ["push"]}}])
    index = read_source_index()
    raw = RawDelivery({"x-github-event": "issues"}, json.dumps(ISSUE).encode(), "g-1", NOON)
    deliveries.store([deliveries.match_delivery(index, index.sources[0], raw, "main")], NOON)
    return Delivery.objects.get()


def test_the_list_says_what_became_of_each(delivery: Delivery):
    (said,) = call("deliveries", "list", "--json").json["deliveries"]
    assert (said["id"], said["outcome"], said["matched"]) == (delivery.pk, "matched", 1)
    assert "issues.opened" in call("deliveries", "list").out
    assert call("deliveries", "list", "--outcome", "ignored").out == "no deliveries\n"
    assert (
        "no webhook source 'ghx'; did you mean" in call("deliveries", "list", "--source", "ghx").err
    )


def test_one_is_shown_with_the_reason_of_each_agent_and_its_work(delivery: Delivery):
    said = call("deliveries", "show", "g-1").out
    assert "events: wanted push, got issues" in said
    assert '"number": 7' in said
    facts = call("deliveries", "show", str(delivery.pk), "--json").json
    assert facts["work"][0]["agent"] == "wants"
    assert facts["context"]["repo"] == "acme/site"


def test_one_is_replayed(delivery: Delivery):
    assert call("deliveries", "replay", str(delivery.pk), "--json").json["matched"] == 1
    assert WorkItem.objects.filter(agent__name="wants").count() == 2


def test_what_is_not_there_is_said_so(delivery: Delivery):
    said = call("deliveries", "show", "9999999")
    assert said.code == 1
    assert (
        said.err
        == "there is no delivery '9999999' (manage.py deliveries list shows the deliveries)\n"
    )


def test_a_dry_run_names_the_matching_agents_and_stores_nothing(delivery: Delivery, tmp_path: Path):
    body = tmp_path / "issue.json"
    body.write_text(json.dumps(ISSUE))
    said = call("webhook", "test", str(body), "--event", "push")
    assert "gh (github): matched" in said.out
    assert "events: wanted issues, got push" in said.out
    facts = call("webhook", "test", str(body), "-H", "X-GitHub-Event: issues", "--json").json
    assert {each["agent"]: each["matched"] for each in facts["agents"]} == {
        "wants": True,
        "other": False,
    }
    assert (Delivery.objects.count(), WorkItem.objects.count()) == (1, 1)


def test_a_dry_run_without_the_event_says_what_is_missing(delivery: Delivery, tmp_path: Path):
    body = tmp_path / "issue.json"
    body.write_text("{}")
    said = call("webhook", "test", str(body))
    assert "ignored" in said.out and "--event" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-file"], "No such file"),
        (["FILE", "--source", "ghh"], "there is no webhook source 'ghh'; did you mean 'gh'?"),
        (["FILE", "-H", "nonsense"], "expected NAME: VALUE"),
    ],
)
def test_a_dry_run_that_cannot_be_done_says_why(
    delivery: Delivery, tmp_path: Path, arguments: list[str], said: str
):
    body = tmp_path / "issue.json"
    body.write_text("{}")
    answer = call("webhook", "test", *[str(body) if a == "FILE" else a for a in arguments])
    assert answer.code == 1
    assert said in answer.err


def test_all_of_a_time_are_replayed_in_their_order(delivery: Delivery):
    Delivery.objects.create(
        **{"tenant": delivery.tenant, "source": delivery.source, "provider": "github"},
        **{"delivery_id": "g-2", "event": "issues", "outcome": "ignored", "body": b"{}"},
        **{"received_at": delivery.received_at, "headers": "{}", "decisions": "[]"},
    )
    said = call("deliveries", "replay", "--since", "2020-01-01 00:00", "--json").json["replayed"]
    assert [each["delivery"] for each in said] == [delivery.pk, delivery.pk + 1]
    only = call("deliveries", "replay", "--since", "2020-01-01 00:00", "--outcome", "matched")
    assert only.out == f"delivery {delivery.pk}: 1 matched, 1 skipped\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name deliveries or use --since TIME"),
        (("g-1", "--since", "1 hour ago"), "name deliveries or use --since"),
        (("--since", "1 second ago"), "no matching delivery since"),
        (
            ("--since", "1 hour ago", "--source", "ghx"),
            "there is no webhook source 'ghx'; did you mean",
        ),
    ],
)
def test_which_are_replayed_must_be_clear(delivery: Delivery, arguments: tuple[str, ...], said):
    answer = call("deliveries", "replay", *arguments)
    assert (answer.code, answer.out) == (1, "")
    assert said in answer.err
