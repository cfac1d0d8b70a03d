"""The page of a run: facts, cause, result and number of queries."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.admin.formatting import page_of
from agents_app.models import AgentCall, RuleState, Run, Tenant, Trigger, WorkItem
from agents_app.reports.provenance import Cause, read_cause_tree
from agents_app.runs import dispatch
from agents_app.runs.dispatch import Request
from agents_app.signals import calls, messages
from tests.agents_app.admin.test_admin import queries_of, text_of
from tests.agents_app.admin.visitors import who_may
from tests.agents_app.fleet import NOON, Fleet, at, live_run


def started(fleet: Fleet, name: str = "planner", **columns: object) -> Run:
    agent = fleet.agent(name, scale=50, **columns)
    return Run.objects.get(pk=fleet.start(fleet.enqueue(agent, requested_by="ann")).run_id)


def flat(cause: Cause, depth: int = 0) -> list[str]:
    own = f"{'  ' * depth}{cause.label} {cause.state} {cause.detail}".rstrip()
    return [own, *(line for each in cause.below for line in flat(each, depth + 1))]


def many_calls(run: Run, fleet: Fleet, count: int) -> None:
    """Written at once: a test of reading."""
    agent = fleet.agent("many")
    whose = {"tenant": fleet.tenant, "agent": agent}
    times = {"created_at": NOON, "available_at": NOON}
    items = WorkItem.objects.bulk_create(
        WorkItem(**whose, **times, trigger="call", state="done") for _ in range(count)
    )
    Run.objects.bulk_create(
        Run(**whose, work_item=item, trigger="call", state="succeeded", created_at=NOON)
        for item in items
    )
    AgentCall.objects.bulk_create(
        AgentCall(**whose, caller_run=run, work_item=item, created_at=NOON, deadline_at=NOON)
        for item in items
    )


# --- facts ----------------------------------------------------------------------------------


def test_the_facts_of_a_run_are_said_in_words(boss: Client, fleet: Fleet):
    run = started(fleet, runtime={"type": "container"})
    WorkItem.objects.filter(pk=run.work_item_id).update(created_at=NOON, prompt="<i>look</i>")
    Run.objects.filter(pk=run.pk).update(
        started_at=NOON + timedelta(seconds=90),
        progress_percent=42.4,
        status_text="reading <b>14</b>",
        tokens_in=12_000,
        tokens_out=340,
        cost_usd=Decimal("0.0312"),
    )
    shown = text_of(boss, page_of(run))
    for words in ("1 min 30 s", "12,000 in · 340 out", "$0.0312", "container", "ann"):
        assert words in shown
    assert 'value="42"' in shown
    assert "reading &lt;b&gt;14&lt;/b&gt;" in shown
    assert "&lt;i&gt;look&lt;/i&gt;" in shown
    assert "kills them after" in shown


@pytest.mark.parametrize("rights", [[], ["view_workitem"]])
def test_the_prompt_requires_the_permission_to_see_work_items(fleet: Fleet, rights: list[str]):
    run = started(fleet)
    WorkItem.objects.filter(pk=run.work_item_id).update(prompt="find the leak")
    client = who_may("view_run", *rights)
    for url in (page_of(run), reverse("admin:agents_app_run_facts", args=[run.pk])):
        assert ("find the leak" in text_of(client, url)) == bool(rights)


@pytest.mark.parametrize("rights", [[], ["view_runevent"]])
def test_events_require_the_permission_to_see_events(fleet: Fleet, rights: list[str]):
    run = started(fleet)
    client = who_may("view_run", *rights)
    for url in (page_of(run), reverse("admin:agents_app_run_events", args=[run.pk])):
        assert ("run.admitted" in text_of(client, url)) == bool(rights)


def test_a_visitor_sees_no_button_in_any_part_of_the_page(visitor: Client, fleet: Fleet):
    run = started(fleet)
    for url in (page_of(run), reverse("admin:agents_app_run_facts", args=[run.pk])):
        assert '<form class="dv-act' not in text_of(visitor, url)
    assert visitor.post(f"/admin/runs/{run.pk}/act/stop/").status_code == 403


def test_events_are_listed_newest_first(boss: Client, fleet: Fleet):
    shown = text_of(boss, page_of(started(fleet)))
    assert shown.index("run.started") < shown.index("run.admitted")


# --- causes ---------------------------------------------------------------------------------


def test_a_run_of_a_schedule_shows_the_schedule_its_work_and_every_attempt(fleet: Fleet):
    agent = fleet.agent(retries=1)
    fleet.fire(fleet.schedule(agent))
    item = agent.work_items.get()
    first = fleet.start(item)
    fleet.finish(first, "failed")
    Run.objects.create(
        **{"tenant": fleet.tenant, "agent": agent, "work_item": item, "trigger": "schedule"},
        **{"attempt": 2, "created_at": NOON, "state": "succeeded"},
    )
    second = Run.objects.latest("id")
    item.refresh_from_db()
    assert flat(read_cause_tree(second)) == [
        "Schedule main  due 2026-03-02 12:00:00 UTC",
        f"  Work item {item.pk} {item.state} {item.reason}".rstrip(),
        f"    reporter, run {first.run_id} failed",
        f"    reporter, run {second.pk} succeeded attempt 2",
    ]


@pytest.mark.parametrize("from_below", [False, True])
def test_calls_are_below_their_caller_whichever_run_is_asked(fleet: Fleet, from_below: bool):
    run = started(fleet)
    fleet.agent("free", scale=1)
    fleet.agent("busy", scale=0)
    called = calls.call(run, "free", "look", NOON)
    calls.call(run, "free", "again", NOON)
    child = Run.objects.get(work_item__call=called.call_id)
    tree = read_cause_tree(child if from_below else run)
    waiting = WorkItem.objects.latest("id")
    assert flat(tree) == [
        "Started by ann",
        f"  Work item {run.work_item_id} admitted",
        f"    planner, run {run.pk} running",
        f"      free, run {child.pk} pending",
        f"      free, work item {waiting.pk} queued",
    ]


def test_work_of_a_delivery_a_message_or_a_rerun_leads_back_to_it(fleet: Fleet):
    agent = fleet.agent(scale=10)
    of_delivery = Request(
        *(fleet.tenant.pk, agent.pk, Trigger.WEBHOOK),
        requested_by="webhook site",
        delivery_id=77,
    )
    sent = messages.send(agent, "hello", "bob", NOON)
    run = live_run(dispatch.enqueue(of_delivery, NOON))
    again = live_run(dispatch.enqueue_rerun(run, "ann", at(5)))
    found = [read_cause_tree(each) for each in (run, Run.objects.earliest("id"), again)]
    assert [(each.table, each.key) for each in found] == [
        ("delivery", 77),
        ("message", sent.pk),
        ("run", run.pk),
    ]


def test_work_of_a_rule_leads_back_to_it_as_long_as_there_is_one(boss: Client, fleet: Fleet):
    columns = {"name": "keep", "text": "[keep] every 1m => summon reporter", "line": 1}
    rule = RuleState.objects.create(tenant=fleet.tenant, **columns)
    RuleState.objects.create(tenant=Tenant.objects.create(name="other"), **columns)
    whose = (fleet.tenant.pk, fleet.agent().pk, Trigger.RULE)
    run = live_run(
        dispatch.enqueue(Request(*whose, requested_by="rule keep", rule_id=rule.pk), NOON)
    )
    link = f'href="{page_of(rule)}">Rule keep</a>'
    assert link in text_of(boss, page_of(run))
    rule.delete()
    assert "<span>Started by rule keep</span>" in text_of(boss, page_of(run))


def test_the_tree_is_nested_lists_with_links_and_names_where_one_is(boss: Client, fleet: Fleet):
    run = started(fleet)
    many_calls(run, fleet, 3)
    shown = text_of(boss, page_of(run))
    tree = shown[shown.index('id="dv-causes"') : shown.index("<h2>Events")]
    assert tree.count("<ul>") == 4
    assert tree.count("<li>") == 6
    assert f'<strong aria-current="true">planner, run {run.pk}</strong>' in tree
    assert f'href="{page_of(AgentCall.objects.latest("id").work_item.runs.get())}"' in tree


def test_a_tree_of_a_thousand_calls_costs_no_more_queries_and_is_folded(boss: Client, fleet: Fleet):
    run = started(fleet)
    many_calls(run, fleet, 2)
    few = queries_of(boss, page_of(run))
    AgentCall.objects.all().delete()
    fleet.tenant.agents.filter(name="many").delete()
    many_calls(run, fleet, 1200)
    assert queries_of(boss, page_of(run)) <= few <= 20
    shown = text_of(boss, page_of(run))
    assert "<summary>1,000 calls</summary>" in shown
