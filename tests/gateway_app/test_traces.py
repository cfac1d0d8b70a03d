"""The trace id of a sender is passed on to work, runs, their processes and the log."""

import json
import urllib.request
from typing import Any

import pytest

from agents_app.models import Delivery, Run, Tenant, WorkItem
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, api_of
from tests.gateway_app.posting import ISSUE, SECRET, Post, WebhookClient, signed, source, subscribe
from tests.parts.fixtures import NewStack
from tests.parts.waiting import wait_for

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
# A request with such a header is accepted and gets a new trace.
MALFORMED = ["", "nonsense", f"ff-{TRACE}-b7ad6b7169203331-01", f"00-{TRACE}", "00-\xff-é"]


# --- webhooks -------------------------------------------------------------------------------


@pytest.fixture
def subscribed(transactional_db, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("TEST_HOOK_SECRET", SECRET)
    fleet = Fleet(Tenant.objects.create(name="default"))
    source(fleet.tenant)
    for name in ("one", "two"):
        subscribe(fleet.agent, name)
    return fleet


def delivered(number: int = 1, **headers: str) -> Post:
    post = signed(ISSUE, number)
    return Post(post.path, post.body, {**post.headers, **headers})


def traces(**columns: Any) -> list[str]:
    return list(
        WorkItem.objects.filter(**columns).order_by("pk").values_list("trace_id", flat=True)
    )


def test_all_work_of_a_delivery_has_the_trace_of_its_sender(subscribed: Fleet):
    assert WebhookClient().one(delivered(traceparent=PARENT)).status == 200
    assert traces() == [TRACE, TRACE]
    assert set(Run.objects.values_list("trace_id", flat=True)) == {TRACE}


@pytest.mark.parametrize("header", MALFORMED)
def test_a_delivery_without_a_valid_traceparent_gets_a_new_trace(subscribed: Fleet, header: str):
    answers = WebhookClient().post(delivered(1, traceparent=header), delivered(2))
    assert [answer.status for answer in answers] == [200, 200]
    found = traces()
    assert len(found) == 4 and len(set(found)) == 2
    assert all(len(trace) == 32 for trace in found)
    assert TRACE not in found


def test_a_replay_has_the_trace_of_its_request(subscribed: Fleet):
    WebhookClient().one(delivered(traceparent=PARENT))
    delivery = Delivery.objects.get()
    api = api_of(subscribed.tenant)
    other = "ab" * 16
    replay = api.post(
        f"/deliveries/{delivery.pk}/replay", traceparent=f"00-{other}-b7ad6b7169203331-00"
    )
    assert replay.status == 202
    assert traces(requested_by__contains="replay") == [other, other]


# --- the API --------------------------------------------------------------------------------


@pytest.fixture
def api(fleet: Fleet) -> Api:
    fleet.agent(scale=1)
    return api_of(fleet.tenant)


def test_a_run_has_the_trace_of_its_request(api: Api, caplog: pytest.LogCaptureFixture):
    run = api.post("/agents/reporter/run", {"prompt": "x"}, traceparent=PARENT).json
    assert run["trace_id"] == TRACE
    assert Run.objects.get().trace_id == TRACE
    (line,) = [r.msg for r in caplog.records if "api.answered" in str(r.msg)]
    assert (line["trace_id"], line["by"], line["status"]) == (TRACE, "token ci", 202)
    rerun = api.post(f"/runs/{run['run_id']}/rerun", traceparent=PARENT).json
    assert rerun["trace_id"] == TRACE


@pytest.mark.parametrize("header", MALFORMED[:-1])
def test_an_invalid_traceparent_of_a_request_is_ignored(api: Api, header: str):
    reply = api.post("/agents/reporter/run", {"prompt": "x"}, traceparent=header)
    assert reply.status == 202
    assert len(reply.json["trace_id"]) == 32 and reply.json["trace_id"] != TRACE


# --- from the sender to the process ---------------------------------------------------------

SKILL = """---
description: Prints its trace
command: ["sh", "-c", "echo $DROVER_TRACE_ID $TRACEPARENT"]
webhooks:
  - source: hooks
---
Print it.
"""


def test_the_process_and_the_log_of_a_run_have_the_trace_of_the_webhook(new_stack: NewStack):
    stack = new_stack()
    stack.write_agent("hello", SKILL)
    config = '[webhooks.hooks]\ntype = "generic"\nallowUnsigned = true\n'
    (stack.project / "config.toml").write_text(config)
    assert stack.manage("discover", "--sync").returncode == 0
    for name in ("redis", "worker-1", "gateway"):
        stack.start(name)
    request = urllib.request.Request(
        f"{stack.url}/webhooks/generic/hooks",
        data=b'{"event": "ping"}',
        headers={"Traceparent": PARENT},
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        assert json.load(response)["matched"] == 1
    (row,) = stack.wait_for_rows("SELECT run_id, data FROM drover_run_output")
    trace, parent = bytes(row["data"]).decode().split()
    assert trace == TRACE
    assert parent == f"00-{TRACE}-{row['run_id']:016x}-01"
    log = stack.data / "logs" / "worker-1.log"
    wait_for(lambda: "run.succeeded" in log.read_text(), 10, "the end was not logged")
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    (ended,) = [line for line in lines if line["event"] == "run.succeeded"]
    assert (ended["trace_id"], ended["run_id"]) == (TRACE, row["run_id"])
    assert {"tenant_id", "agent_id", "timestamp", "level"} <= ended.keys()
