"""A work item names the row it was created for, as long as that row exists."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.maintenance.retention import remove_old_rows
from agents_app.models import Delivery, RuleState, Run, WebhookSource, WorkItem
from agents_app.reports import read_cause_tree
from agents_app.runs import dispatch
from tests.agents_app.fleet import NOON, Fleet, at, live_run

CAUSES = ("delivery", "rule", "rerun_of", "parent_run")


def delivery_of(fleet: Fleet) -> Delivery:
    source = WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")
    values = {"received_at": NOON, "outcome": "matched", "headers": "{}", "body": b"a long body"}
    return Delivery.objects.create(tenant=fleet.tenant, source=source, **values)


def rule_of(fleet: Fleet) -> RuleState:
    return RuleState.objects.create(tenant=fleet.tenant, name="keep", text="[keep]", line=1)


def test_texts_and_keys_that_look_like_a_cause_are_not_read(fleet: Fleet):
    delivery, rule = delivery_of(fleet), rule_of(fleet)
    agent = fleet.agent(scale=9)
    run = live_run(fleet.enqueue(agent))
    for values in (
        {"trigger": "webhook", "idempotency_key": f"delivery:{delivery.pk}:reporter"},
        {"trigger": "rule", "requested_by": f"rule {rule.name}"},
        {"requested_by": f"ann, rerun of run {run.pk}"},
    ):
        found = read_cause_tree(live_run(fleet.enqueue(agent, **values)))
        assert (found.table, found.key) == ("", 0), values


def test_a_deleted_cause_becomes_null_and_the_text_remains(fleet: Fleet):
    delivery, rule = delivery_of(fleet), rule_of(fleet)
    agent = fleet.agent(scale=9)
    of_delivery = fleet.enqueue(
        agent, trigger="webhook", delivery_id=delivery.pk, requested_by="gh"
    )
    of_rule = fleet.enqueue(agent, trigger="rule", rule_id=rule.pk, requested_by="rule keep")
    delivery.delete()
    rule.delete()
    for item in (of_delivery, of_rule):
        item.refresh_from_db()
        assert (item.delivery_id, item.rule_id) == (None, None)
        assert read_cause_tree(item.runs.get()).label == f"Started by {item.requested_by}"


def test_retention_of_a_run_leaves_its_reruns_without_a_cause(fleet: Fleet):
    agent = fleet.agent(scale=2)
    job = fleet.start(fleet.enqueue(agent))
    fleet.finish(job)
    again = dispatch.enqueue_rerun(Run.objects.get(pk=job.run_id), "ann", at(5))
    assert again.rerun_of_id == job.run_id
    remove_old_rows(at(days=15))
    assert WorkItem.objects.get().rerun_of_id is None


def test_retention_reads_no_body_of_a_delivery(fleet: Fleet):
    delivery_of(fleet)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        remove_old_rows(at(days=31))
    assert not Delivery.objects.exists()
    assert [sql for query in queries if '"body"' in (sql := query["sql"])] == []


@pytest.mark.parametrize("name", CAUSES)
def test_the_work_of_a_cause_is_found_by_an_index(fleet: Fleet, name: str):
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        plan = WorkItem.objects.filter(**{f"{name}__in": [1, 2]}).explain()
    assert f"work_item_of_{name}" in plan
