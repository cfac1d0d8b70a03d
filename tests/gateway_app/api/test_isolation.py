"""Another tenant's object is answered for in the very words of one that does not exist.

Every address of the API's own document is walked, so one that is added later is walked, too.
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
from tests.gateway_app.api.belongings import Belongings, settle
from tests.gateway_app.api.calling import Api, Reply, api_of

MARK = "belongs-to-somebody-else"
KEYS = ("schedule_id", "run_id", "item_id", "token_id", "delivery_id", "lock_id")
UNKNOWN = {**dict.fromkeys(KEYS, 987654), "source": "nobody-hooks"}
# What an operation needs to get as far as looking for its object.
BODIES: Mapping[str, Any] = {
    "scale_agent": {"scale": 3},
    "change_schedule": {"message": "mine"},
    "create_schedule": {"schedule": "daily", "message": "mine", "agent": "{name}"},
    "clear_queue": {"agent": "{name}"},
    "preview_schedule": {"schedule": "daily"},
    "scale_project": {"scale": 3},
    "create_token": {"name": "mine"},
    "create_tenant": {"name": "mine"},
    "send_message": {"text": "mine"},
    **{f"signal_{name}": {"text": "mine"} for name in ("status", "return", "progress", "call")},
    **{f"signal_{name}": {"uri": "x:y"} for name in ("lock", "unlock", "lock_heartbeat")},
    "signal_check": {"id": 1},
    "signal_wait": {"ids": [1]},
    "signal_schedule": {"line": "list"},
}
FILTERS = {"agent": "name", "schedule_id": "schedule_id", "run_id": "run_id", "source": "source"}
# These act on the caller's own tenant as a whole: nothing in them names an object.
OF_NOBODY = {"stop_scheduler", "rotate_tenant"}


def operations() -> list[tuple[str, str, Any]]:
    """Those that take something away last."""
    document = API.get_openapi_schema(path_prefix="")
    found = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return sorted(found, key=lambda each: each[0] == "DELETE")


def walk(api: Api, names: Mapping[str, Any]) -> dict[str, tuple[Reply, int]]:
    """What each operation answers that names one of these objects anywhere in its request."""
    replies = {}
    for method, path, operation in operations():
        name = operation["operationId"]
        body = _filled(BODIES.get(name), names) if "requestBody" in operation else None
        if "{" in path or body != BODIES.get(name):
            replies[f"{method} {path}"] = counted(api, method, path.format(**names), body)
        for parameter in operation["parameters"]:
            of = FILTERS.get(parameter["name"])
            if parameter["in"] == "query" and of and "{" not in path:
                asked = f"{path}?{parameter['name']}={names[of]}"
                replies[f"{method} {path}?{parameter['name']}"] = counted(api, method, asked)
    return replies


def counted(api: Api, method: str, path: str, body: Any = None) -> tuple[Reply, int]:
    """With the number of its queries, which is what takes the time."""
    with CaptureQueriesContext(connection) as queries:
        return api.send(method, path, body), len(queries)


def _filled(body: Any, names: Mapping[str, Any]) -> Any:
    if body is None:
        return None
    return {key: names["name"] if value == "{name}" else value for key, value in body.items()}


def names_of(belongings: Belongings) -> dict[str, Any]:
    return {
        "name": belongings.agent.name,
        "schedule_id": belongings.schedule.pk,
        "run_id": belongings.run.pk,
        "item_id": belongings.item.pk,
        "token_id": belongings.token_id,
        "delivery_id": belongings.delivery.pk,
        "source": belongings.delivery.source.name,
        "lock_id": belongings.lock_id,
    }


@pytest.fixture
def theirs(fleet: Fleet, others: Fleet) -> Belongings:
    """The second tenant's, so that its ids are not by chance those of nobody."""
    settle(fleet, "mine")
    return settle(others, MARK)


def rows() -> dict[str, list[Any]]:
    """Everything that any tenant owns."""
    owned = [model for model in apps.get_models() if "tenant" in _columns(model)]
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in owned}


def _columns(model: Any) -> set[str]:
    return {column.name for column in model._meta.get_fields()}


@pytest.mark.parametrize("scope", ["operate", "admin"])
@pytest.mark.fault("F72")
def test_every_address_answers_for_another_s_object_as_for_none(
    fleet: Fleet, theirs: Belongings, scope: str
):
    api = api_of(fleet.tenant, scope, "nosy")
    before = rows()
    unknown = walk(api, {"name": "nobody", **UNKNOWN})
    foreign = walk(api, names_of(theirs))
    assert len(foreign) > 25
    for address, (reply, queries) in foreign.items():
        nothing, queries_for_nothing = unknown[address]
        assert queries == queries_for_nothing, address  # nor does the time tell
        assert reply.status == nothing.status, address
        assert reply.status == 404 or (reply.status == 403 and scope != "admin"), address
        said = reply.response.content.decode().replace(theirs.agent.name, "nobody")
        assert said == nothing.response.content.decode(), address
        headers = (dict(answer.response.headers) for answer in (reply, nothing))
        ours, none = ({**each, "Content-Length": ""} for each in headers)
        assert ours == none, address
    assert rows() == before


@pytest.mark.fault("F72")
def test_the_name_of_another_tenant_is_the_name_of_none(fleet: Fleet, others: Fleet):
    api = api_of(others.tenant, "admin", "nosy")
    before = list(Tenant.objects.values())
    for method, path, operation in operations():
        if not path.startswith("/tenants/"):
            continue
        known, unknown = (
            api.send(method, path.format(name=name)) for name in ("default", "nobody")
        )
        assert known.status == unknown.status == 404, operation["operationId"]
        assert known.response.content == unknown.response.content
    assert list(Tenant.objects.values()) == before


def test_no_answer_of_any_operation_mentions_what_is_another_s(fleet: Fleet, theirs: Belongings):
    """As the tenant sees its own things, and with nothing but its own names in the request."""
    mine = {"name": "agent-of-mine", **UNKNOWN}
    api = api_of(fleet.tenant, "admin", "nosy")
    for method, path, operation in operations():
        name = operation["operationId"]
        if name in OF_NOBODY or path.startswith("/tenants"):
            continue
        reply = api.send(method, path.format(**mine), _filled(BODIES.get(name), mine))
        assert MARK not in reply.response.content.decode(), (method, path)


def test_the_objects_are_there_for_their_owner(others: Fleet, theirs: Belongings):
    """The walk above can fail: it asks for what exists."""
    api = api_of(others.tenant, "admin", "owner")
    found = {at: reply.status for at, (reply, _) in walk(api, names_of(theirs)).items()}
    of_tenants = {address for address in found if "/tenants/" in address}
    missing = [address for address in found if found[address] == 404 and address not in of_tenants]
    assert missing == []
    assert RunEvent.objects.filter(tenant=others.tenant, name="schedule.deleted").exists()


def test_every_operation_with_a_body_has_one_to_be_walked_with():
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
