"""Creates one object of each kind for a tenant, each marked with a text that is unique."""

import json
from dataclasses import dataclass

from agents_app.accounts.tokens import create_token
from agents_app.database.transactions import in_transaction
from agents_app.events import journal
from agents_app.models import (
    Agent,
    AgentCall,
    Delivery,
    Heartbeat,
    Message,
    ResourceLock,
    RuleBook,
    RuleState,
    Run,
    RunOutput,
    Schedule,
    WebhookSource,
    WorkItem,
)
from tests.agents_app.fleet import NOON, Fleet, at


@dataclass(frozen=True)
class TenantObjects:
    agent: Agent
    schedule: Schedule
    run: Run
    item: WorkItem
    token_id: int
    delivery: Delivery
    lock_id: int


def create_objects(fleet: Fleet, mark: str) -> TenantObjects:
    """Objects of two tenants have different names and ids."""
    agent = fleet.agent(f"agent-of-{mark}", scale=1, description=mark)
    schedule = fleet.schedule(agent, name=mark, prompt=mark, text=mark)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    RunOutput.objects.create(
        tenant=fleet.tenant, run_id=job.run_id, seq=1, stream=1, at=NOON, data=mark.encode()
    )
    Heartbeat.objects.create(
        tenant=fleet.tenant, worker=fleet.workers[0], run_id=job.run_id, state="busy", at=NOON
    )
    fleet.finish(job, "failed", error=mark)
    fleet.start(fleet.enqueue(agent, prompt=mark, requested_by=mark))
    item = fleet.enqueue(agent, prompt=mark, requested_by=mark)
    token = create_token(fleet.tenant, mark, "read", mark, NOON).row
    note = journal.JournalEntry("agent.scaled", NOON, fleet.tenant.pk, agent.pk, detail=mark)
    in_transaction(lambda: journal.record(note))
    rule = f'[{mark}] every 1m => msg {agent.name} "{mark}"'
    RuleState.objects.create(
        tenant=fleet.tenant, name=mark, text=rule, line=1, next_due_at=NOON, reason=mark
    )
    RuleBook.objects.create(tenant=fleet.tenant, silenced_at=NOON, silenced_by=mark)
    run = Run.objects.get(pk=job.run_id)
    lock = _create_message_call_and_lock(fleet, run, item, mark)
    return TenantObjects(
        agent, schedule, run, item, token.pk, _create_delivery(fleet, mark), lock.pk
    )


def _create_delivery(fleet: Fleet, mark: str) -> Delivery:
    source = WebhookSource.objects.create(tenant=fleet.tenant, name=f"{mark}-hooks", type="github")
    return Delivery.objects.create(
        tenant=fleet.tenant,
        source=source,
        provider="github",
        delivery_id=mark,
        received_at=NOON,
        signed_by=mark,
        event="issues",
        outcome="matched",
        headers=json.dumps({"x-github-event": "issues", "x-mark": mark}),
        body=json.dumps({"action": "opened", "title": mark}).encode(),
    )


def _create_message_call_and_lock(
    fleet: Fleet, run: Run, item: WorkItem, mark: str
) -> ResourceLock:
    """The lock expires in a hundred years, so it is in force at any time of a test."""
    owned = {"tenant": fleet.tenant, "created_at": NOON}
    Message.objects.create(agent=run.agent, text=mark, **owned)
    AgentCall.objects.create(
        caller_run=run, agent=run.agent, work_item=item, deadline_at=at(hours=2), **owned
    )
    return ResourceLock.objects.create(
        tenant=fleet.tenant,
        uri=f"x:{mark}",
        holder=mark,
        held_since=NOON,
        ttl_seconds=1,
        expires_at=at(days=36_500),
    )
