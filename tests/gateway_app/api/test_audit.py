"""Who did what: every act through the API leaves an entry with the caller's name in the journal.

Every address of the API's own document is walked, so one that is added later must have an entry,
too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agents_app.accounts.tokens import create_token
from agents_app.models import Agent, Run, RunEvent, Tenant, WorkItem
from gateway_app.api import scheduler
from gateway_app.api.app import API
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.belongings import Belongings, settle
from tests.gateway_app.api.calling import Api

# Nothing is changed by these.
ONLY_ASKS = {"preview_schedule", "test_rules"}
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


# What must be so for there to be something to do.
BEFORE: Mapping[str, Callable[[], Any]] = {
    "resume_agent": _paused,
    "resume_scheduler": _paused,
    "restore_queue": _cleared,
    "enable_tenant": _disabled,
}


def acts() -> list[tuple[str, str, str]]:
    document = API.get_openapi_schema(path_prefix="")
    return [
        (operation["operationId"], method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        # What a running agent says is noted as its own.
        if method != "get"
        and operation["operationId"] not in ONLY_ASKS
        and operation["tags"] != ["signals"]
    ]


@pytest.fixture
def mine(fleet: Fleet, others: Fleet, monkeypatch: pytest.MonkeyPatch) -> Belongings:
    monkeypatch.setattr(scheduler, "stop_when_idle", lambda: None)
    create_token(others.tenant, "old", "read", "somebody else", NOON)
    return settle(fleet, "mine")


def path_of(name: str, path: str, mine: Belongings) -> str:
    live = Run.objects.get(slot__isnull=False)
    return path.format(
        name="acme" if path.startswith("/tenants") else mine.agent.name,
        schedule_id=mine.schedule.pk,
        run_id=live.pk if name == "stop_run" else mine.run.pk,
        item_id=mine.item.pk,
        token_id=mine.token_id,
        delivery_id=mine.delivery.pk,
        lock_id=mine.lock_id,
    )


@pytest.mark.parametrize(("name", "method", "path"), acts())
def test_every_act_is_noted_with_the_name_of_who_did_it(
    admin: Api, mine: Belongings, name: str, method: str, path: str
):
    if name in BEFORE:
        BEFORE[name]()
    before = set(RunEvent.objects.values_list("pk", flat=True))
    reply = admin.send(method, path_of(name, path, mine), BODIES.get(name))
    assert reply.status in {200, 201, 202}, reply.json
    new = RunEvent.objects.exclude(pk__in=before).values_list("name", "detail")
    assert [entry for entry in new if "token root" in entry[1]], list(new)


def test_what_changes_nothing_is_not_noted(admin: Api, mine: Belongings):
    before = RunEvent.objects.count()
    admin.post(f"/agents/{mine.agent.name}/resume")
    admin.post("/scheduler/resume")
    admin.post("/queue/restore")
    assert admin.post(f"/runs/{mine.run.pk}/stop").status == 409
    assert RunEvent.objects.count() == before


def test_a_repeated_request_is_noted_once(admin: Api, mine: Belongings):
    for _ in range(2):
        admin.post(f"/agents/{mine.agent.name}/run", {"prompt": "x"}, Idempotency_Key="k")
    assert RunEvent.objects.filter(name="work.requested").count() == 1


def test_the_list_of_acts_is_not_empty_and_names_what_is_there():
    names = {name for name, _, _ in acts()}
    assert len(names) > 20
    assert set(BODIES) | set(BEFORE) <= names
