"""Every error has the common form, the right status, and a message with a remedy."""

import json
from typing import Any

import pytest
from django.db import OperationalError

from agents_app.models import Agent, WorkItem
from gateway_app.api import agents
from gateway_app.asgi.body_limit import API_BYTES
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api


@pytest.fixture(autouse=True)
def agent(fleet: Fleet) -> Agent:
    return fleet.agent()


# --- bodies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"not json",
        b'{"prompt": "\xff\xfe"}',
        b"\xff",
        b'{"prompt": NaN}',
        b'{"prompt": "a", "prompt": "b"}',
        b"[" * 100_000,
        b'\xef\xbb\xbf{"prompt": "a byte order mark"}',
        b'{"prompt": ' + b"1" * 5_000 + b"}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_not_json_in_utf_8_is_refused(api: Api, body: bytes):
    reply = api.post("/agents/reporter/run", body)
    assert (reply.status, reply.error["code"]) == (400, "bad_json")
    assert not WorkItem.objects.exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"scale": "3"}, "scale: Input should be a valid integer"),
        ({"scale": True}, "scale: Input should be a valid integer"),
        ({"scale": -1}, "scale: Input should be greater than or equal to 0"),
        ({"scale": None}, "scale: Input should be a valid integer"),
        ({}, "scale: this field is required"),
        ({"scal": 1}, "'scal': unknown field; did you mean 'scale'?"),
        ([1], "Input should be a valid dictionary or instance of ScaleRequest"),
        (None, "this field is required"),
    ],
)
def test_a_body_with_wrong_fields_says_which_and_why(api: Api, body: Any, message: str):
    reply = api.post("/agents/reporter/scale", body)
    assert (reply.status, reply.error["code"], reply.message) == (400, "invalid", message)
    assert Agent.objects.get().scale == 1


def test_a_float_without_a_fraction_is_a_whole_number(api: Api):
    assert api.post("/agents/reporter/scale", b'{"scale": 3.0}').json["scale"] == 3
    assert api.post("/agents/reporter/scale", b'{"scale": 3e0}').status == 200
    assert api.post("/agents/reporter/scale", b'{"scale": 3.5}').status == 400


def test_several_wrong_fields_are_reported_together(api: Api):
    wrong = {"schedule": "daily", "message": "m", "gap": "x", "jitter_percent": 11}
    reply = api.post("/schedules", wrong)
    assert reply.status == 400
    assert [field["field"] for field in reply.error["fields"]] == ["jitter_percent", "gap"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_cannot_be_stored_is_refused(api: Api, text: str):
    reply = api.post("/agents/reporter/run", json.dumps({"prompt": text}).encode())
    assert (reply.status, reply.error["code"]) == (400, "invalid")
    assert not WorkItem.objects.exists()


def test_a_body_of_the_largest_size_is_read(api: Api):
    empty = len(json.dumps({"prompt": ""}))
    body = {"prompt": "x" * (API_BYTES - empty)}
    assert api.post("/agents/reporter/run", body).status == 202


# --- addresses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/nothing",
        "/a%0Ab",
        "/runs/%0A",
        "/runs/abc",
        "/runs/-1",
        "/runs/1/2/3",
        "/agents/a/b",
        "/schedules/1.5",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_address_is_a_404_with_the_common_error_form(api: Api, path: str, method: str):
    reply = api.send(method, path)
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert "/v1/docs" in reply.message


@pytest.mark.parametrize(
    "path",
    ["/runs/999", f"/runs/{2**63}", "/agents/%00", "/agents/Missing", f"/agents/{'x' * 999}"],
)
def test_an_unknown_object_is_a_404_that_does_not_repeat_its_name(api: Api, path: str):
    reply = api.get(path)
    assert reply.status == 404
    assert reply.message in {"there is no such run", "there is no such agent"}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "OPTIONS", "TRACE"])
def test_a_wrong_method_is_a_405_that_names_the_right_one(api: Api, method: str):
    reply = api.send(method, "/agents/reporter")
    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed")
    assert set(reply.response["Allow"].split(", ")) == {"DELETE", "GET"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": "0"}, "limit: Input should be greater than or equal to 1"),
        ({"limit": "201"}, "limit: Input should be less than or equal to 200"),
        ({"limit": "x"}, "limit: Input should be a valid integer, unable to parse"),
        ({"since": "nan"}, "since: Input should be a finite number"),
        ({"since": "1e99"}, "since: Input should be less than or equal to 253402300799"),
        ({"stat": "failed"}, "'stat': unknown field; did you mean 'state'?"),
        ({"state": "bogus"}, "state: Input should be 'pending'"),
    ],
)
def test_a_wrong_filter_is_refused_not_ignored(api: Api, query: dict[str, str], message: str):
    reply = api.get("/runs", **query)
    assert reply.status == 400
    assert reply.message.startswith(message)


def test_too_many_fields_in_an_address_are_refused(api: Api):
    reply = api.get("/runs?" + "&".join(f"a{number}=1" for number in range(2000)))
    assert (reply.status, reply.error["code"]) == (400, "invalid")


# --- internal errors ------------------------------------------------------------------------


def test_an_unavailable_database_is_a_503_that_says_to_try_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    def away(*_: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(agents, "agent_shapes", away)
    reply = api.get("/agents")
    assert (reply.status, reply.error["code"]) == (503, "unavailable")
    assert reply.response["Retry-After"] == "1"


def test_an_internal_error_is_a_500_without_details(api: Api, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("the secret is hunter2")

    monkeypatch.setattr(agents, "agent_shapes", broken)
    reply = api.get("/agents")
    assert (reply.status, reply.error["code"]) == (500, "internal")
    assert "hunter2" not in reply.response.content.decode()
