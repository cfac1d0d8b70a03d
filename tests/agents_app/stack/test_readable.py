"""Log lines of processes as short lines for people."""

import io
import json
from typing import Any

from agents_app.stack.console import Console
from agents_app.stack.readable import ReadableLog


def entry(event: str, second: float = 0, **fields: Any) -> str:
    stamp = f"2026-01-01T00:50:{second:06.3f}Z"
    return json.dumps({"event": event, "level": "info", "timestamp": stamp, **fields})


def shown(log: ReadableLog, line: str) -> str | None:
    found = log.render("worker-1", line)
    return None if found is None else str(found).split(" ", 1)[1]


def test_a_run_is_two_lines_and_the_second_says_how_long_it_took() -> None:
    log, run = ReadableLog(), {"agent": "heartbeat", "run_id": 3, "trigger": "schedule"}
    assert shown(log, entry("run.started", 22, **run)) == "heartbeat #3 started (schedule)"
    ended = entry("run.succeeded", 22.014, detail="", **run)
    assert shown(log, ended) == "heartbeat #3 succeeded in 14 ms"
    failed = entry("run.timed_out", 40, detail="after 15 s", agent="a", run_id=4)
    assert shown(log, failed) == "a #4 timed out: after 15 s"


def test_other_events_are_words_with_their_facts_and_warnings_are_loud() -> None:
    log = ReadableLog()
    assert shown(log, entry("rules.loaded", rules=8, trace_id="x")) == (
        "worker-1 rules loaded rules=8"
    )
    warning = entry("run.lost", level="warning", agent="a", run_id=1, detail="its worker died")
    assert shown(log, warning.replace('"level": "info", ', "", 1)) == (
        "a WARNING #1 lost: its worker died"
    )
    assert shown(log, entry("firing.claimed", agent="a")) is None


def test_text_that_is_not_json_is_shown_as_it_is() -> None:
    for text in ("Warm shutdown", "{broken", "[1]", '{"no": "event"}'):
        assert shown(ReadableLog(), text) == f"worker-1 {text}"


def test_json_lines_have_the_role_and_messages_become_objects() -> None:
    stream = io.StringIO()
    console = Console(stream, style="json")
    console.line("beat", entry("rules.loaded", rules=8))
    console.say("Drover is ready\n  project  x")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["role"] for line in lines] == ["beat", "up", "up"]
    assert (lines[0]["rules"], lines[1]["detail"]) == (8, "Drover is ready")
