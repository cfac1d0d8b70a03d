"""Rules files with other content than rules, and files that are being saved."""

import pytest

from agents_app.models import RuleState
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language.source import FILE_NAME
from tests.agents_app.rules.engine.rules_clock import Rules, at, book, event_details, row


def test_the_first_hundred_errors_are_kept_and_the_rest_is_counted(
    rules: Rules, caplog: pytest.LogCaptureFixture
):
    (rules.project / FILE_NAME).write_text("x\n" * 2000)
    rules.tick(at("12:00"))
    *first, last = book().errors
    assert [error["line"] for error in first] == list(range(1, 101))
    assert (last["code"], last["line"]) == ("more_errors", 101)
    assert last["problem"] == "1900 more invalid lines, from this one on"
    (once,) = event_details("rules.invalid")
    assert once.endswith(": x, and 1999 more")
    logged = [record.msg for record in caplog.records if "expected" in record.msg]
    assert [line["line"] for line in logged] == list(range(1, 102))


def test_bytes_that_are_not_utf8_make_only_their_line_invalid(rules: Rules):
    lines = (
        b"# \xfcbung",
        b"[a] every 1m => resume all",
        b'[b] every 1m => run "\xff"',
        b"# \xc3\xbc",
    )
    (rules.project / FILE_NAME).write_bytes(b"\n".join(lines))
    assert rules.ticks(at("12:00"), at("12:01")) == [("a", at("12:01"))]
    first, second = book().errors
    assert (first["line"], first["column"], first["code"]) == (1, 3, "bad_character")
    assert first["problem"] == "the byte 0xFC is not UTF-8"
    assert (second["line"], second["problem"]) == (3, "the byte 0xFF is not UTF-8")
    # Neither the database nor JSON accepts lone surrogates.
    assert "".join(f"{error['raw']}{error['problem']}" for error in book().errors).isascii()


@pytest.mark.parametrize("gap", [b"", b"\n", None])
def test_a_tick_while_the_file_is_being_saved_changes_nothing(rules: Rules, gap: bytes | None):
    rules.save("[a] every 1m => resume all")
    rules.outcome = ActionOutcome(problem="no")
    rules.ticks(at("12:00"), at("12:01"))
    before = row("a")
    assert before.failures == 1
    _leave(rules, gap)
    rules.tick(at("12:01:10"))
    rules.save("[a] every 1m => resume all", "# saved")
    rules.tick(at("12:01:20"))
    # A later gap is counted from its own beginning.
    _leave(rules, gap)
    rules.tick(at("12:01:30"))
    after = row("a")
    same = ("pk", "failures", "fired_at", "next_due_at", "backoff_until")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    rules.tick(at("12:01:40"))
    assert not RuleState.objects.exists()


def test_rules_still_fire_at_the_first_tick_after_the_file_is_removed(rules: Rules):
    rules.save("[a] every 10s => resume all")
    rules.tick(at("12:00"))
    _leave(rules, None)
    assert rules.tick(at("12:00:10")) == ["a"]
    assert rules.tick(at("12:00:20")) == []


def _leave(rules: Rules, data: bytes | None) -> None:
    file = rules.project / FILE_NAME
    file.unlink() if data is None else file.write_bytes(data)
