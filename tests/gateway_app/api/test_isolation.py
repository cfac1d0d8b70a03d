"""An object of another tenant is reported exactly like one that does not exist.

Every operation of the OpenAPI document is called, so operations that are added later are, too.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents_app.conf import ROOT
from agents_app.models import RunEvent, Tenant
from gateway_app.api.app import API
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, Reply, api_of
from tests.gateway_app.api.tenant_objects import TenantObjects, create_objects

MARK = "of-another-tenant"
KEYS = ("schedule_id", "run_id", "item_id", "token_id", "delivery_id", "lock_id")
UNKNOWN = {**dict.fromkeys(KEYS, 987654), "source": "missing-hooks"}
# Valid bodies: an operation with one looks for its object.
BODIES: Mapping[str, Any] = {
    "scale_agent": {"scale": 3},
    "change_schedule": {"message": "mine"},
    "create_schedule": {"schedule": "daily", "message": "mine", "agent": "{name}"},
    "clear_queue": {"agent": "{name}"},
    "preview_schedule": {"schedule": "daily", "agent": "{name}"},
    "scale_project": {"scale": 3},
    "create_token": {"name": "mine"},
    "create_tenant": {"name": "mine"},
    "send_message": {"text": "mine"},
    **{f"signal_{name}": {"text": "mine"} for name in ("status", "return", "progress", "call")},
    **{f"signal_{name}": {"uri": "x:y"} for name in ("lock", "unlock", "lock_heartbeat")},
    "signal_metadata": {"key": "k", "value": "mine"},
    "signal_check": {"id": 1},
    "signal_wait": {"ids": [1]},
    "signal_schedule": {"line": "list"},
}
FILTERS = {"agent": "name", "schedule_id": "schedule_id", "run_id": "run_id", "source": "source"}
# These act on the whole tenant of the caller: their requests name no object.
OF_WHOLE_TENANT = {"stop_scheduler", "rotate_tenant"}


def operations() -> list[tuple[str, str, Any]]:
    """All operations; those that delete something come last."""
    document = API.get_openapi_schema(path_prefix="")
    found = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return sorted(found, key=lambda each: each[0] == "DELETE")


def call_operations(api: Api, names: Mapping[str, Any]) -> dict[str, tuple[Reply, int]]:
    """The reply of each operation whose request names one of these objects."""
    replies = {}
    for method, path, operation in operations():
        name = operation["operationId"]
        body = _filled(BODIES.get(name), names) if "requestBody" in operation else None
        if "{" in path or body != BODIES.get(name):
            replies[f"{method} {path}"] = call_and_count_queries(
                api, method, path.format(**names), body
            )
        for parameter in operation["parameters"]:
            of = FILTERS.get(parameter["name"])
            if parameter["in"] == "query" and of and "{" not in path:
                address = f"{path}?{parameter['name']}={names[of]}"
                replies[f"{method} {path}?{parameter['name']}"] = call_and_count_queries(
                    api, method, address
                )
    return replies


def call_and_count_queries(api: Api, method: str, path: str, body: Any = None) -> tuple[Reply, int]:
    """The reply and the number of queries, which determines the time of a response."""
    with CaptureQueriesContext(connection) as queries:
        return api.send(method, path, body), len(queries)


def _filled(body: Any, names: Mapping[str, Any]) -> Any:
    if body is None:
        return None
    return {key: names["name"] if value == "{name}" else value for key, value in body.items()}


def names_of(objects: TenantObjects) -> dict[str, Any]:
    return {
        "name": objects.agent.name,
        "schedule_id": objects.schedule.pk,
        "run_id": objects.run.pk,
        "item_id": objects.item.pk,
        "token_id": objects.token_id,
        "delivery_id": objects.delivery.pk,
        "source": objects.delivery.source.name,
        "lock_id": objects.lock_id,
    }


@pytest.fixture
def theirs(fleet: Fleet, others: Fleet) -> TenantObjects:
    """The objects of the second tenant: their ids differ from those of missing objects."""
    create_objects(fleet, "mine")
    return create_objects(others, MARK)


def rows() -> dict[str, list[Any]]:
    """All rows of all tables with a tenant."""
    owned = [model for model in apps.get_models() if "tenant" in _columns(model)]
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in owned}


def _columns(model: Any) -> set[str]:
    return {column.name for column in model._meta.get_fields()}


@pytest.mark.parametrize("scope", ["operate", "admin"])
@pytest.mark.fault("F72")
def test_an_object_of_another_tenant_is_reported_like_a_missing_one(
    fleet: Fleet, theirs: TenantObjects, scope: str
):
    api = api_of(fleet.tenant, scope, "nosy")
    before = rows()
    unknown = call_operations(api, {"name": "missing", **UNKNOWN})
    foreign = call_operations(api, names_of(theirs))
    assert len(foreign) > 25
    for address, (reply, queries) in foreign.items():
        nothing, queries_for_nothing = unknown[address]
        assert queries == queries_for_nothing, address  # the same time, too
        assert reply.status == nothing.status, address
        assert reply.status == 404 or (reply.status == 403 and scope != "admin"), address
        content = reply.response.content.decode().replace(theirs.agent.name, "missing")
        assert content == nothing.response.content.decode(), address
        headers = (dict(each.response.headers) for each in (reply, nothing))
        of_other, of_none = ({**each, "Content-Length": ""} for each in headers)
        assert of_other == of_none, address
    assert rows() == before


@pytest.mark.fault("F72")
def test_another_tenant_is_reported_like_a_missing_one(fleet: Fleet, others: Fleet):
    api = api_of(others.tenant, "admin", "nosy")
    before = list(Tenant.objects.values())
    for method, path, operation in operations():
        if not path.startswith("/tenants/"):
            continue
        known, unknown = (
            api.send(method, path.format(name=name)) for name in ("default", "missing")
        )
        assert known.status == unknown.status == 404, operation["operationId"]
        assert known.response.content == unknown.response.content
    assert list(Tenant.objects.values()) == before


def test_no_response_contains_data_of_another_tenant(fleet: Fleet, theirs: TenantObjects):
    """Calls every operation with the names of the own objects."""
    mine = {"name": "agent-of-mine", **UNKNOWN}
    api = api_of(fleet.tenant, "admin", "nosy")
    for method, path, operation in operations():
        name = operation["operationId"]
        if name in OF_WHOLE_TENANT or path.startswith("/tenants"):
            continue
        reply = api.send(method, path.format(**mine), _filled(BODIES.get(name), mine))
        assert MARK not in reply.response.content.decode(), (method, path)


def test_every_object_is_found_by_its_own_tenant(others: Fleet, theirs: TenantObjects):
    """Shows that the test above can fail: the objects exist."""
    api = api_of(others.tenant, "admin", "owner")
    found = {at: reply.status for at, (reply, _) in call_operations(api, names_of(theirs)).items()}
    of_tenants = {address for address in found if "/tenants/" in address}
    missing = [address for address in found if found[address] == 404 and address not in of_tenants]
    assert missing == []
    assert RunEvent.objects.filter(tenant=others.tenant, name="schedule.deleted").exists()


def test_every_operation_with_a_body_has_a_test_body():
    needed = [
        operation["operationId"]
        for _, _, operation in operations()
        if operation.get("requestBody", {}).get("required")
    ]
    assert set(needed) <= set(BODIES)


def test_only_two_modules_of_the_api_query_rows():
    """One limits every query to a tenant, the other finds the tenant of a session."""
    packages = ("api", "access")
    files = [path for each in packages for path in (ROOT / "gateway_app" / each).glob("*.py")]
    found = {path.name for path in files if ".objects" in path.read_text()}
    assert found == {"tenant_rows.py", "auth.py"}
