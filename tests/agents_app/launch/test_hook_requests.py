"""Hooks that send requests to a real server, with values of credentials that are in no log."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.launch import event_hooks, hook_requests
from agents_app.launch.hook_context import EventHook
from agents_app.launch.hook_requests import build_request, message_of, reply_problem
from agents_app.models import Run, RunOutput
from agents_app.notifications import OutgoingReply
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from agents_app.worker.execute import Host
from tests.agents_app.executing import do, shell
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.receiver import Receiver, receiving

TOKEN = "token-of-the-receiver-4711"
CONTEXT: dict[str, Any] = {
    "event": "failed",
    "job": {"id": "7", "agentId": "reporter", "scheduleName": "daily", "durationMs": 95_000},
    "result": {"success": False, "output": "<!channel> done\n", "error": "exit code 3"},
    "agent": {"id": "reporter", "name": "reporter"},
    "metadata": {},
}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    conf = replace(CONF, outgoing_hosts=frozenset({"127.0.0.1"}))
    monkeypatch.setattr(event_hooks, "CONF", conf)
    with receiving() as found:
        yield found


def whole_log(run: Run) -> str:
    pieces = RunOutput.objects.filter(run=run).order_by("seq")
    return b"".join(bytes(piece.data) for piece in pieces).decode()


def run_with(fleet: Fleet, host: Host, hook: dict[str, Any], script: str = "echo hi") -> Run:
    set_credential(fleet.tenant, parse_name("ci_token"), {"value": TOKEN}, "ann", NOON)
    hooks = {"after_run": [hook]}
    return do(
        fleet, host, fleet.agent(command=shell(script), credentials=["ci_token"], hooks=hooks)
    )


# --- webhook --------------------------------------------------------------------------------


def test_a_webhook_sends_the_context_with_a_credential_in_a_header(
    fleet: Fleet, host: Host, receiver: Receiver, caplog, capfd
):
    hook = {
        "type": "webhook",
        "url": f"{receiver.url}/done?x=1",
        "headers": {"Authorization": "Bearer ${CI_TOKEN}", "X-Kind": "report"},
    }
    run = run_with(fleet, host, hook)
    (request,) = receiver.requests
    assert (request.path, request.headers["authorization"]) == ("/done?x=1", f"Bearer {TOKEN}")
    assert request.headers["x-kind"] == "report"
    assert request.headers["content-type"].startswith("application/json")
    context = json.loads(request.body)
    assert (context["job"]["id"], context["result"]["output"]) == (str(run.pk), "hi\n")
    assert whole_log(run).endswith(
        "[hooks.after_run: webhook 127.0.0.1]\n[hooks.after_run: done]\n"
    )
    assert TOKEN not in whole_log(run) + caplog.text + capfd.readouterr().err


def test_a_webhook_may_use_put(fleet: Fleet, host: Host, receiver: Receiver):
    run_with(fleet, host, {"type": "webhook", "url": receiver.url, "method": "PUT"})
    assert [request.method for request in receiver.requests] == ["PUT"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_no_success_is_a_problem(
    fleet: Fleet, host: Host, receiver: Receiver, status: int
):
    receiver.status = status
    run = run_with(
        fleet, host, {"type": "webhook", "url": receiver.url, "continue_on_error": False}
    )
    problem = f"hooks.after_run: webhook 127.0.0.1: the answer has the status {status}"
    assert (run.state, run.error) == ("failed", problem)
    assert len(receiver.requests) == 1


def test_an_address_inside_is_refused_unless_it_was_named(
    fleet: Fleet, host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(event_hooks, "CONF", CONF)
    run = run_with(fleet, host, {"type": "webhook", "url": receiver.url})
    assert receiver.requests == []
    assert "DROVER_OUTGOING_HOSTS" in whole_log(run)


def test_a_receiver_that_does_not_answer_ends_the_hook_in_time(
    fleet: Fleet, host: Host, receiver: Receiver
):
    receiver.pace = "silent"
    hook = {"type": "webhook", "url": receiver.url, "timeout_seconds": 0.3}
    assert "127.0.0.1 has not answered after 0.3 s" in whole_log(run_with(fleet, host, hook))


def test_a_variable_that_is_not_one_of_a_credential_is_not_sent(
    fleet: Fleet, host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_WORKER", "must-not-leave-the-worker")
    hook = {"type": "webhook", "url": receiver.url, "headers": {"X-A": "${OF_THE_WORKER}"}}
    run = run_with(fleet, host, hook)
    assert receiver.requests == []
    assert "the variable OF_THE_WORKER is not one of a credential of this agent" in whole_log(run)


def test_a_value_that_is_no_header_is_refused_without_telling_it():
    hook = EventHook(type="webhook", url="https://hooks.example/", headers={"X-A": "${KEY}"})
    with pytest.raises(Refused) as caught:
        build_request(hook, CONTEXT, {"KEY": "first-line\nsecond-line"})
    assert "line" in str(caught.value) and "first-line" not in str(caught.value)


# --- slack and discord ----------------------------------------------------------------------


def test_a_message_says_what_happened_and_the_end_of_the_output():
    assert message_of(CONTEXT) == (
        "reporter: run 7 (daily) failed after 95 s\nexit code 3\n<!channel> done"
    )
    long = {**CONTEXT, "result": {"output": "x" * 5000 + "end"}}
    assert len(message_of(long)) <= hook_requests.MAX_MESSAGE_LENGTH
    assert message_of(long).endswith("xend")


def test_slack_gets_a_message_without_markup(fleet: Fleet, host: Host, receiver: Receiver):
    hook = {"type": "slack", "url": receiver.url}
    run = run_with(fleet, host, hook, "echo '<!channel> & more'")
    text = json.loads(receiver.requests[0].body)["text"]
    assert text.endswith("&lt;!channel&gt; &amp; more")
    assert whole_log(run).endswith("[hooks.after_run: done]\n")


def test_the_url_of_a_webhook_may_be_a_credential(
    fleet: Fleet, host: Host, receiver: Receiver, caplog, capfd
):
    url = f"{receiver.url}/services/T0/B0/very-secret-path"
    set_credential(fleet.tenant, parse_name("slack_url"), {"value": url}, "ann", NOON)
    hook = {"type": "slack", "url": "${SLACK_URL}"}
    agent = fleet.agent(credentials=["slack_url"], hooks={"after_run": [hook]})
    receiver.status = 410
    run = do(fleet, host, agent)
    assert receiver.requests[0].path == "/services/T0/B0/very-secret-path"
    assert "[hooks.after_run: the answer has the status 410]" in whole_log(run)
    assert "very-secret-path" not in whole_log(run) + caplog.text + capfd.readouterr().err


def test_a_bot_of_slack_posts_to_the_channel_and_its_errors_are_read(
    fleet: Fleet, host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hook_requests, "SLACK_URL", f"{receiver.url}/api/chat.postMessage")
    hook = {"type": "slack", "channel_id": "C123", "bot_token_env": "CI_TOKEN"}
    receiver.answers = [(200, {}, b'{"ok": false, "error": "channel_not_found"}')]
    run = run_with(fleet, host, hook)
    (request,) = receiver.requests
    assert (request.path, request.headers["authorization"]) == (
        "/api/chat.postMessage",
        f"Bearer {TOKEN}",
    )
    assert json.loads(request.body)["channel"] == "C123"
    assert "[hooks.after_run: Slack answered: channel_not_found]" in whole_log(run)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"ok": true}', ""),
        (b'{"ok": "true"}', "Slack answered: not ok"),
        (b"[]", "Slack answered: not ok"),
        (b"<html>", "the answer of Slack is no JSON"),
    ],
)
def test_the_answer_of_slack_is_in_its_body(body: bytes, problem: str):
    hook = EventHook(type="slack", channel_id="C1")
    assert reply_problem(hook, OutgoingReply(200, body)) == problem


def test_discord_notifies_no_person(
    fleet: Fleet, host: Host, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hook_requests, "DISCORD_URL", f"{receiver.url}/channels/{{}}/messages")
    hook = {"type": "discord", "channel_id": "99", "bot_token_env": "CI_TOKEN"}
    receiver.status = 204
    run = run_with(fleet, host, hook, "echo '@everyone'")
    (request,) = receiver.requests
    assert request.path == "/channels/99/messages"
    assert request.headers["authorization"] == f"Bot {TOKEN}"
    body = json.loads(request.body)
    assert body["allowed_mentions"] == {"parse": []} and "@everyone" in body["content"]
    assert whole_log(run).endswith("[hooks.after_run: discord 99]\n[hooks.after_run: done]\n")
