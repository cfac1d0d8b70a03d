"""Pages by cursor: no row twice and none left out, also if rows are added meanwhile."""

import base64
import json
from typing import Any

import pytest

from agents_app.models import RunEvent
from tests.agents_app.fleet import NOON, Fleet
from tests.gateway_app.api.calling import Api


def every(api: Api, path: str, key: str, **query: Any) -> list[Any]:
    """The rows of all pages; reads each page twice, because reading changes nothing."""
    found: list[Any] = []
    while True:
        page = api.get(path, **query).json
        assert page == api.get(path, **query).json
        found += page[key]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_the_pages_together_are_the_whole_list(fleet: Fleet, reader: Api, limit: int):
    names = [f"agent-{number}" for number in range(7)]
    for name in reversed(names):
        fleet.agent(name)
    assert [agent["name"] for agent in every(reader, "/agents", "agents", limit=limit)] == names


def test_new_rows_do_not_shift_the_next_page(fleet: Fleet, reader: Api):
    agent = fleet.agent(scale=100)
    runs = [fleet.enqueue(agent).runs.get().pk for _ in range(6)]
    first = reader.get("/runs", limit=3).json
    later = fleet.enqueue(agent).runs.get().pk
    second = reader.get("/runs", limit=3, cursor=first["next_cursor"]).json
    seen = [run["id"] for page in (first, second) for run in page["runs"]]
    assert seen == runs[::-1]
    assert second["next_cursor"] is None
    assert reader.get("/runs").json["runs"][0]["id"] == later


def test_a_page_with_exactly_the_remaining_rows_is_the_last(fleet: Fleet, reader: Api):
    for number in range(4):
        fleet.agent(f"agent-{number}")
    page = reader.get("/agents", limit=2).json
    assert reader.get("/agents", limit=2, cursor=page["next_cursor"]).json["next_cursor"] is None


def test_the_last_cursor_of_oldest_events_finds_future_events(fleet: Fleet, reader: Api):
    def record(name: str) -> None:
        RunEvent.objects.create(tenant=fleet.tenant, name=name, at=NOON)

    RunEvent.objects.all().delete()
    start = reader.get("/events", order="oldest").json
    assert start == {"events": [], "next_cursor": None}
    record("agent.paused")
    page = reader.get("/events", order="oldest").json
    assert [event["name"] for event in page["events"]] == ["agent.paused"]
    nothing = reader.get("/events", order="oldest", cursor=page["next_cursor"]).json
    assert nothing == {"events": [], "next_cursor": page["next_cursor"]}
    record("agent.resumed")
    page = reader.get("/events", order="oldest", cursor=page["next_cursor"]).json
    assert [event["name"] for event in page["events"]] == ["agent.resumed"]


def _cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%%%",
        "\N{SNOWMAN}",
        "bnVsbA",
        _cursor(["name", "a"]),
        _cursor(["-pk", "1"]),
        _cursor(["-pk", True]),
        _cursor(["-pk", -1]),
        _cursor(["-pk", 2**63]),
        _cursor(["-pk", 1, 2]),
        _cursor({"-pk": 1}),
        base64.urlsafe_b64encode(b"[" * 200).decode(),
    ],
)
def test_a_cursor_that_the_api_did_not_make_is_refused(reader: Api, cursor: str):
    reply = reader.get("/runs", cursor=cursor)
    assert (reply.status, reply.error["code"]) == (400, "invalid")
    assert reply.message.startswith("cursor:")
