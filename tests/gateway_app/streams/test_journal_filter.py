"""From an entry of the journal to what a listener is told."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agents_app.events.tail import TailEntry
from agents_app.text import CUT, summary
from gateway_app.streams.journal_filter import JournalFilter
from tests.agents_app.fleet import NOON, at

ENDED = TailEntry(
    id=9,
    tenant_id=1,
    name="run.succeeded",
    at=at(3),
    detail="",
    agent="reporter",
    run_id=4,
    schedule_id=17,
    started_at=NOON,
    finished_at=at(3),
    result_summary="all is well",
    error="",
)


def data_of(event: bytes) -> Any:
    return json.loads(event.decode().splitlines()[1].removeprefix("data: "))


def test_an_ending_says_how_it_went():
    event = JournalFilter(1).events([ENDED])
    assert event.startswith(b"event: notification\ndata: {") and event.endswith(b"\nid: 9\n\n")
    assert data_of(event) == {
        "kind": "run.completed",
        "task_id": 17,
        "run_id": 4,
        "agent_id": "reporter",
        "status": "succeeded",
        "started_at": int(NOON.timestamp()),
        "completed_at": int(NOON.timestamp()) + 3,
        "result_summary": "all is well",
        "error": "",
    }


def test_a_start_does_not_know_yet_how_it_ends_although_the_row_does():
    data = data_of(JournalFilter(1).events([replace(ENDED, name="run.started")]))
    assert (data["kind"], data["status"]) == ("run.started", "running")
    assert (data["completed_at"], data["result_summary"]) == (None, "")


@pytest.mark.parametrize(
    "wanted",
    [
        JournalFilter(2),
        JournalFilter(1, kinds=frozenset({"run.failed"})),
        JournalFilter(1, agent="another"),
        JournalFilter(1, run_id=5),
        JournalFilter(1, everything=True, kinds=frozenset({"run.completed"})),
    ],
)
def test_what_is_not_wanted_is_not_told(wanted: JournalFilter):
    assert wanted.events([ENDED]) == b""


@pytest.mark.parametrize(
    "wanted",
    [
        JournalFilter(1, kinds=frozenset({"run.completed"}), agent="reporter", run_id=4),
        JournalFilter(1, everything=True, kinds=frozenset({"run.succeeded"})),
    ],
)
def test_what_is_wanted_is_told(wanted: JournalFilter):
    assert wanted.events([ENDED]).count(b"event:") == 1


@pytest.mark.parametrize("text", ["", "x" * 4096, "\N{BUG}" * 1024])
def test_a_short_result_is_told_as_it_is(text: str):
    assert summary(text) == text


def test_a_long_result_is_cut_at_4096_bytes_with_a_remark():
    assert summary("x" * 4097) == "x" * 4096 + "\n\N{HORIZONTAL ELLIPSIS}[truncated]"
    # Never within a character, and never twice.
    odd = summary("x" + "\N{BUG}" * 2000)
    assert odd == "x" + "\N{BUG}" * 1023 + CUT
    assert summary(odd) == odd
