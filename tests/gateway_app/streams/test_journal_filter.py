"""Which journal entries become events of a notification stream, and the data of the events."""

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


def test_the_end_of_a_run_says_how_the_run_ended():
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


def test_the_start_of_a_run_says_nothing_about_its_end_although_the_row_does():
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
def test_an_entry_that_the_filter_leaves_out_becomes_no_event(wanted: JournalFilter):
    assert wanted.events([ENDED]) == b""


@pytest.mark.parametrize(
    "wanted",
    [
        JournalFilter(1, kinds=frozenset({"run.completed"}), agent="reporter", run_id=4),
        JournalFilter(1, everything=True, kinds=frozenset({"run.succeeded"})),
    ],
)
def test_an_entry_that_the_filter_includes_becomes_one_event(wanted: JournalFilter):
    assert wanted.events([ENDED]).count(b"event:") == 1


@pytest.mark.parametrize("text", ["", "x" * 4096, "\N{BUG}" * 1024])
def test_a_short_result_is_not_cut(text: str):
    assert summary(text) == text


def test_a_long_result_is_cut_at_4096_bytes_with_a_remark():
    assert summary("x" * 4097) == "x" * 4096 + "\n\N{HORIZONTAL ELLIPSIS}[truncated]"
    # Never within a character, and never twice.
    odd = summary("x" + "\N{BUG}" * 2000)
    assert odd == "x" + "\N{BUG}" * 1023 + CUT
    assert summary(odd) == odd
