"""What others are told of a run: a payload that explains itself, signed as others sign theirs."""

import base64
import json

import pytest

from agents_app.notifications.payloads import Notice, build_body, build_headers
from agents_app.webhooks.providers import PROVIDERS, Signed
from tests.agents_app.fleet import NOON, at

NOTICE = Notice(7, "run.timed_out", NOON, "after 5 s", "reporter", 3, "schedule", url="https://d/3")
BASE64_KEY = "whsec_" + base64.b64encode(b"a key of twenty-four bytes").decode()


def test_a_program_is_told_what_happened_to_what():
    told = json.loads(build_body(NOTICE, "json"))
    assert (told["type"], told["timestamp"]) == ("run.timed_out", "2026-03-02T12:00:00+00:00")
    assert told["data"] == {
        "run_id": 3,
        "agent": "reporter",
        "trigger": "schedule",
        "attempt": 1,
        "exit_code": None,
        "error": "after 5 s",
        "url": "https://d/3",
    }


def test_people_are_told_in_a_sentence():
    told = json.loads(build_body(NOTICE, "slack"))
    assert told == {"text": "reporter: run 3 timed out: after 5 s https://d/3"}


def test_an_error_message_cannot_ring_a_channel():
    notice = Notice(7, "run.failed", NOON, "<!channel> & <https://evil|click>", "reporter", 3)
    text = json.loads(build_body(notice, "slack"))["text"]
    assert text == ("reporter: run 3 failed: &lt;!channel&gt; &amp; &lt;https://evil|click&gt;")


@pytest.mark.parametrize("secret", [BASE64_KEY, "whsec_no base64", "just a secret"])
def test_the_signature_is_one_that_our_own_door_lets_in(secret):
    body = build_body(NOTICE, "json")
    headers = {k.lower(): v for k, v in build_headers(NOTICE, body, secret, NOON).items()}
    verify = PROVIDERS["standard"].verify
    assert verify(Signed(headers, body), {"s": secret}, NOON) == "s"
    assert verify(Signed(headers, body + b" "), {"s": secret}, NOON) is None
    assert verify(Signed(headers, body), {"s": "another"}, NOON) is None


def test_the_id_is_the_same_however_often_it_is_sent():
    first, later = (build_headers(NOTICE, b"{}", "", now) for now in (NOON, at(hours=3)))
    assert first["webhook-id"] == later["webhook-id"] == "drover-event-7"
    assert first["webhook-timestamp"] != later["webhook-timestamp"]
    assert "webhook-signature" not in first


def test_a_rule_has_no_run_and_no_agent():
    notice = Notice(8, "rule.failed", NOON, "rule nightly: exit code 3", "", None)
    assert (
        json.loads(build_body(notice, "slack"))["text"] == "rule failed: rule nightly: exit code 3"
    )
    assert json.loads(build_body(notice, "json"))["type"] == "rule.failed"
