"""The JSON of commands and the responses of the API have the same names and the same values."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pytest

from agents_app.accounts.tokens import create_token
from agents_app.models import Delivery, ResourceLock, WebhookSource
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.management.calling import call
from tests.gateway_app.api.calling import Api

# Names of version 0.1.0, each beside the name that the API has, too.
OLDER = {
    *("queue_size", "running_runs", "text", "prompt", "one_shot", "state", "run", "output"),
    *("work_item", "asked_by", "agents"),
}
# Values that only commands have: times in the zone of a schedule, and what a screen shows.
ONLY_COMMANDS = {
    *("shown_state", "next_fire_local", "pause_until_local", "last_fire_local"),
    *("last_completed_local", "last_completed_at", "created_local", "updated_local", "last_run"),
    *("open", "run_id", "agent"),
}


@pytest.fixture
def api(fleet: Fleet) -> Api:
    return Api(create_token(fleet.tenant, "test", "admin", "ann", NOON).secret)


def assert_same(command: Mapping[str, Any], api: Mapping[str, Any], what: str) -> None:
    """Each name of the command is one of the API, with the same value, or listed above."""
    unknown = command.keys() - api.keys() - OLDER - ONLY_COMMANDS
    assert not unknown, f"{what}: the API does not have {unknown}"
    for name in command.keys() & api.keys():
        one, other = _comparable(command[name]), _comparable(api[name])
        if isinstance(one, dict) and isinstance(other, dict):
            assert_same(one, other, f"{what}.{name}")
        else:
            assert one == other, f"{what}.{name}"


def _comparable(value: Any) -> Any:
    """Times of the API are whole seconds, except those of lines."""
    if isinstance(value, str) and value.endswith("Z") and "T" in value:
        return datetime.fromisoformat(value).replace(microsecond=0)
    return value or None  # the API has null where a command has an empty text


def pairs(command: Iterable[Any], api: Iterable[Any]) -> list[tuple[Any, Any]]:
    found = list(zip(command, api, strict=True))
    assert found
    return found


@pytest.fixture
def delivery(fleet: Fleet) -> Delivery:
    """A row of each kind that both describe; the agent has a running run and a queued work item."""
    agent = fleet.agent(scale=1)
    fleet.schedule(agent, text="every monday at 09:00", prompt="write", next_fire_at=at(days=3))
    job = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent, prompt="wait")
    source = WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")
    delivery = Delivery.objects.create(
        **{"tenant": fleet.tenant, "source": source, "provider": "github", "delivery_id": "d-1"},
        **{"event": "push", "outcome": "unmatched", "received_at": NOON, "headers": "{}"},
        **{"decisions": '[{"agent": "reporter", "matched": false, "reason": "no"}]', "body": b"{}"},
    )
    ResourceLock.objects.create(
        **{"tenant": fleet.tenant, "uri": "file:///srv/a", "holder": agent.name},
        **{"run_id": job.run_id, "held_since": NOON, "ttl_seconds": 60},
        expires_at=at(days=36_500),
    )
    return delivery


def test_commands_and_api_describe_the_same_rows_with_the_same_names(api: Api, delivery: Delivery):
    def asked(path: str) -> Any:
        return api.get(path, times="iso").json

    stat = call("stat", "--json").json
    assert_same(stat["scheduler"], asked("/scheduler"), "scheduler")
    lists = {
        "agents": (stat["agents"], asked("/agents")["agents"]),
        "schedules": (
            call("schedule", "list", "--json").json["schedules"],
            asked("/schedules")["schedules"],
        ),
        "queue": (call("queue", "list", "--json").json["items"], asked("/queue")["items"]),
        "locks": (call("locks", "list", "--json").json["locks"], asked("/locks")["locks"]),
        "tokens": (call("token", "list", "--json").json, asked("/tokens")["tokens"]),
    }
    for what, (command, answer) in lists.items():
        for one, other in pairs(command, answer):
            assert_same(one, other, what)
    shown = asked(f"/deliveries/{delivery.pk}")
    assert_same(call("deliveries", "show", str(delivery.pk), "--json").json, shown, "delivery")
    # Two requests: the number and the trace of the second one are others.
    accepted, said = api.post("/agents/reporter/run").json, call("run", "reporter", "--json").json
    assert accepted["work_item_id"] + 1 == said["work_item_id"]
    own = {name: said[name] for name in ("work_item_id", "trace_id")}
    others = {"waits_because": accepted["waits_because"].replace("1 queued", "2 queued")}
    assert_same(said, accepted | own | others, "run")


def test_times_are_seconds_or_iso_8601_text(fleet: Fleet, api: Api):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    path = f"/runs/{job.run_id}"
    assert api.get(path).json["started_at"] == api.get(path, times="epoch").json["started_at"]
    assert api.get(path).json["started_at"] == int(NOON.timestamp())
    shown = api.get(path, times="iso").json
    assert (shown["started_at"], shown["finished_at"]) == ("2026-03-02T12:00:00Z", None)
    assert api.get("/agents", times="iso").json["agents"][0]["last_run"] == shown
    refused = api.get("/agents", times="unix")
    assert (refused.status, refused.message) == (
        400,
        "times: 'unix' is not known: use iso or epoch",
    )
    # A secret that is shown once has times, too.
    made = api.post("/tokens?times=iso", {"name": "ci"}).json
    assert made["created_at"].endswith("Z") and made["token"]
