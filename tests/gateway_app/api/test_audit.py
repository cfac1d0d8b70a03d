"""Every change through the API is recorded in the journal with the name of the caller.

Every operation of the OpenAPI document is called, so operations that are added later are, too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agents_app.accounts.tokens import create_token
from agents_app.models import Agent, Run, RunEvent, Tenant, WorkItem
from gateway_app.api.app import API
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.calling import Api
from tests.gateway_app.api.tenant_objects import TenantObjects, create_objects

# These operations change nothing, although they use POST.
ONLY_READS = {"preview_schedule", "test_rules"}
BODIES: Mapping[str, Any] = {
    "scale_agent": {"scale": 3},
    "change_schedule": {"message": "new"},
    "create_schedule": {"schedule": "daily", "message": "new", "agent": "agent-of-mine"},
    "scale_project": {"scale": 3},
    "create_token": {"name": "new"},
    "create_tenant": {"name": "new"},
    "send_message": {"text": "new"},
}


def _paused() -> None:
    Agent.objects.update(paused_at=NOON)
    Tenant.objects.update(paused_at=NOON)


def _cleared() -> None:
    WorkItem.objects.filter(state="queued").update(state="cleared")


def _disabled() -> None:
    Tenant.objects.filter(name="acme").update(disabled_at=NOON)


def _removed() -> None:
    Run.objects.filter(slot__isnull=False).update(slot=None, project_slot=None, state="stopped")
    Agent.objects.update(removed_at=NOON)


# Prepares rows that the operation can change.
BEFORE: Mapping[str, Callable[[], Any]] = {
    "resume_agent": _paused,
    "resume_scheduler": _paused,
    "restore_queue": _cleared,
    "enable_tenant": _disabled,
    "forget_agent": _removed,
}


def changes() -> list[tuple[str, str, str]]:
    document = API.get_openapi_schema(path_prefix="")
    return [
        (operation["operationId"], method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        # Signals are recorded with the name of the agent.
        if method != "get"
        and operation["operationId"] not in ONLY_READS
        and operation["tags"] != ["signals"]
    ]


@pytest.fixture
def mine(fleet: Fleet, others: Fleet) -> TenantObjects:
    create_token(others.tenant, "old", "read", "another user", NOON)
    return create_objects(fleet, "mine")


def path_of(name: str, path: str, mine: TenantObjects) -> str:
    live = Run.objects.filter(slot__isnull=False).first()
    return path.format(
        name="acme" if path.startswith("/tenants") else mine.agent.name,
        schedule_id=mine.schedule.pk,
        run_id=live.pk if live and name == "stop_run" else mine.run.pk,
        item_id=mine.item.pk,
        token_id=mine.token_id,
        delivery_id=mine.delivery.pk,
        lock_id=mine.lock_id,
    )


@pytest.mark.parametrize(("name", "method", "path"), changes())
def test_every_change_is_in_the_journal_with_the_name_of_the_caller(
    admin: Api, mine: TenantObjects, name: str, method: str, path: str
):
    if name in BEFORE:
        BEFORE[name]()
    before = set(RunEvent.objects.values_list("pk", flat=True))
    reply = admin.send(method, path_of(name, path, mine), BODIES.get(name))
    assert reply.status in {200, 201, 202}, reply.json
    new = RunEvent.objects.exclude(pk__in=before).values_list("name", "detail", "actor")
    assert {actor for _, _, actor in new} - {""} == {"token root"}, list(new)
    assert [detail for _, detail, _ in new if "token root" in detail], list(new)


def test_a_request_that_changes_nothing_is_not_in_the_journal(admin: Api, mine: TenantObjects):
    before = RunEvent.objects.count()
    admin.post(f"/agents/{mine.agent.name}/resume")
    admin.post("/scheduler/resume")
    admin.post("/queue/restore")
    assert admin.post(f"/runs/{mine.run.pk}/stop").status == 409
    assert RunEvent.objects.count() == before


def test_a_repeated_request_is_in_the_journal_once(admin: Api, mine: TenantObjects):
    for _ in range(2):
        admin.post(f"/agents/{mine.agent.name}/run", {"prompt": "x"}, Idempotency_Key="k")
    assert RunEvent.objects.filter(name="work.requested").count() == 1


def test_the_tested_changes_are_all_operations_that_change_something():
    names = {name for name, _, _ in changes()}
    assert len(names) > 20
    assert set(BODIES) | set(BEFORE) <= names
