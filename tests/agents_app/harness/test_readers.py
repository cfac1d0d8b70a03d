"""Readers of reports: unknown lines and invalid values are ignored."""

import json
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app.harness import HARNESSES, Report, events
from agents_app.harness.usage import Spending
from agents_app.runs.job import Ending
from agents_app.skills.specs import HarnessName
from agents_app.worker.report_watcher import ReportWatcher
from tests.agents_app.harness.tools import (
    CLAUDE_INIT,
    CODEX_START,
    claude_message,
    claude_result,
    codex_says,
    codex_turn,
)


def read(harness: str, *said: Any) -> Report:
    reader = HARNESSES[harness].reader
    assert reader is not None
    reading = reader()
    for line in said:
        raw = line if isinstance(line, bytes) else json.dumps(line).encode()
        for event in events(raw):
            reading.read(event)
    return reading.report()


def test_every_harness_of_the_file_format_exists():
    assert set(get_args(HarnessName)) == set(HARNESSES)


# --- Claude Code ------------------------------------------------------------------------------


def test_claude_codes_result_is_text_tokens_and_cost():
    report = read("claude-code", CLAUDE_INIT, claude_result("Three were merged."))
    assert (report.text, report.error) == ("Three were merged.", "")
    assert report.spending == Spending(100, 50, 3200, Decimal("0.123457"))


def test_a_message_printed_several_times_counts_once():
    said = [claude_message("a", 7), claude_message("a", 9), claude_message("b", 1)]
    assert read("claude-code", *said).spending == Spending(10, 10, 60)


def test_usage_of_sub_agents_is_added_to_the_result():
    said = [claude_message("a", 5000), claude_result()]
    assert read("claude-code", *said).spending == Spending(5000, 50, 3200, Decimal("0.123457"))


def test_the_last_result_counts_because_its_cost_is_a_running_total():
    said = [claude_result("one"), claude_result("two", total_cost_usd=0.5)]
    report = read("claude-code", *said)
    assert (report.text, report.spending.cost_usd) == ("two", Decimal("0.5"))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"is_error": True, "result": "Invalid API key"}, "claude: Invalid API key"),
        ({"subtype": "error_max_turns", "result": None}, "claude: error_max_turns"),
        ({"is_error": True, "result": "", "subtype": ""}, "claude: failed without a reason"),
    ],
)
def test_a_result_that_is_an_error_is_no_answer(changes, error):
    report = read("claude-code", claude_result(**changes))
    assert report.text == ""
    assert report.error.startswith(error)
    assert report.spending.tokens_out == 50


def test_the_format_that_prints_everything_as_one_list_is_read_too():
    said = [CLAUDE_INIT, claude_message("a", 3), claude_result("fine")]
    assert read("claude-code", json.dumps(said).encode()).text == "fine"


# --- Codex --------------------------------------------------------------------------------------


def test_codex_last_message_is_its_answer_and_its_cached_input_is_not_counted_twice():
    turn = codex_turn(input_tokens=1000, cached_input_tokens=600, output_tokens=70)
    report = read("codex", *CODEX_START, codex_says("hm"), codex_says("Done."), turn)
    assert report == Report("Done.", "", Spending(400, 70, 600))


def test_codex_counts_all_its_turns_itself():
    said = [codex_turn(input_tokens=10, output_tokens=1), codex_turn(input_tokens=30)]
    assert read("codex", *said).spending == Spending(30, 0, 0)


def test_a_turn_that_failed_says_why():
    said = [codex_says("half"), {"type": "turn.failed", "error": {"message": "out of quota"}}]
    assert read("codex", *said) == Report("", "codex: out of quota")


def test_an_error_before_a_completed_turn_is_ignored():
    said = [{"type": "error", "message": "Reconnecting... 1/5"}, codex_says("ok"), codex_turn()]
    assert read("codex", *said) == Report("ok")


# --- anything at all ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1, 1.5, "7", True, None, [], 10**13, float("inf")])
def test_an_impossible_count_counts_as_0(value):
    usage = {"input_tokens": value, "output_tokens": 3, "cache_read_input_tokens": value}
    assert read("claude-code", claude_result(usage=usage)).spending.tokens == 3


@pytest.mark.parametrize("value", [-0.1, "1", True, None, 1e9, float("nan"), float("inf")])
def test_an_impossible_cost_counts_as_0(value):
    assert read("claude-code", claude_result(total_cost_usd=value)).spending.cost_usd == 0


def test_characters_that_cannot_be_stored_are_removed_from_the_text():
    assert read("claude-code", claude_result("a\0b\ud800c\x1b[31m")).text == "ab?c"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_types = st.sampled_from(
    ["assistant", "result", "item.completed", "turn.completed", "turn.failed", "error"]
)
_names = st.sampled_from(["message", "usage", "result", "item", "error", "id", "text", "subtype"])
_events = st.builds(
    lambda kind, more: {"type": kind} | more, _types, st.dictionaries(_names, _json)
)


@given(st.sampled_from(["claude-code", "codex"]), st.lists(_events | _json, max_size=5))
def test_no_line_makes_a_reader_fail(harness, said):
    report = read(harness, *said)
    assert report.spending.tokens >= 0


@pytest.mark.parametrize(
    "line", [b"", b"plain text", b"{", b'{"type": "result"', b"[" * 100_000, b"\xff{", b'["x", 1]']
)
def test_a_line_that_is_not_an_event_is_ignored(line):
    assert read("claude-code", line).is_empty


# --- the verdict --------------------------------------------------------------------------------


def judged(ending: Ending, *said: Any, caps: dict[str, Any] | None = None) -> tuple[Ending, list]:
    stopped: list[str] = []
    reader = HARNESSES["claude-code"].reader
    assert reader is not None
    watcher = ReportWatcher(reader(), caps or {}, stopped.append)
    for line in said:
        watcher.line(json.dumps(line).encode(), 0.0)
    return watcher.applied_to(ending), stopped


def test_a_program_without_reports_keeps_its_ending():
    ending = Ending("succeeded", exit_code=0)
    assert judged(ending, CLAUDE_INIT)[0] == ending


def test_a_program_with_exit_code_0_that_reports_an_error_has_failed():
    ending, _ = judged(Ending("succeeded", wants_rerun=True), claude_result("no", is_error=True))
    assert (ending.state, ending.error, ending.wants_rerun) == ("failed", "claude: no", False)


def test_the_error_contains_the_exit_code_and_the_report():
    ending, _ = judged(Ending("failed", "exit code 1"), claude_result("no", is_error=True))
    assert ending.error == "exit code 1: claude: no"


@pytest.mark.parametrize("state", ["stopped", "timed_out"])
def test_a_stopped_run_keeps_its_reason_despite_a_report(state):
    ending, _ = judged(Ending(state, "because"), claude_result("no", is_error=True))
    assert (ending.state, ending.error) == (state, "because")
    assert ending.report is not None
    assert ending.report.spending.tokens_out == 50


def test_a_cap_on_tokens_stops_a_program_before_its_last_event_only():
    said = [claude_message("a", 70), claude_message("b", 70)]
    caps = {"tokens_per_run": 200}
    _, stopped = judged(Ending("succeeded"), *said, caps=caps)
    assert stopped == ["budget: 210 tokens used, at most 200 per run"]
    assert judged(Ending("succeeded"), claude_result(), caps=caps)[1] == []
