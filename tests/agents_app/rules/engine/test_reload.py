"""A saved file is in effect at the next tick; unchanged rules keep their state."""

from pathlib import Path

import pytest

from agents_app.models import RuleState
from agents_app.rules.engine.outcome import ActionOutcome
from agents_app.rules.language.source import FILE_NAME
from tests.agents_app.rules.engine.rules_clock import Rules, at, book, event_details, row


def test_an_unchanged_rule_keeps_its_state_when_the_file_is_edited(rules: Rules):
    rules.save("[a] every 5m => resume all")
    rules.outcome = ActionOutcome(problem="no")
    rules.ticks(at("12:00"), at("12:06"))
    before = row("a")
    assert before.failures == 1
    rules.save("# a comment", "[b] every 1h => resume all", "[a]   every  300s =>   resume all")
    rules.tick(at("12:06:10"))
    after = row("a")
    same = ("pk", "fired_at", "failures", "next_due_at", "backoff_until", "status")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert (row("b").line, after.line) == (2, 3)


def test_a_changed_rule_is_reset(rules: Rules):
    rules.save("[a] every 5m => resume all")
    rules.ticks(at("12:00"), at("12:06"))
    rules.save("[a] every 10m => resume all")
    assert rules.ticks(at("12:06:10"), at("12:16:10")) == [("a", at("12:16:10"))]


def test_a_saved_file_is_loaded_at_the_next_tick(rules: Rules):
    rules.tick(at("12:00"))
    assert not RuleState.objects.exists()
    rules.save("[a] every 5m => resume all")
    rules.tick(at("12:00:10"))
    assert (row("a").next_due_at, book().loaded_at) == (at("12:05:10"), at("12:00:10"))


def test_an_invalid_line_is_reported_once_and_the_other_rules_continue(rules: Rules):
    rules.save("[a] every 1m => resume all", "every never => dance", "[b] every 1m => resume all")
    assert len(rules.ticks(at("12:00"), at("12:01"))) == 2
    (detail,) = event_details("rules.invalid")
    assert detail.startswith("scheduler.rules: line 2, column 7: ")
    assert detail.endswith("every never => dance")
    (error,) = book().errors
    assert (error["line"], error["raw"]) == (2, "every never => dance")
    assert book().problems[0].startswith("scheduler.rules: line 2, column 7: ")
    rules.save("[a] every 1m => resume all", "[b] every 1m => resume all")
    rules.tick(at("12:01:10"))
    assert book().problems == []


def test_an_invalid_line_is_logged_with_its_number_and_text(
    rules: Rules, caplog: pytest.LogCaptureFixture
):
    rules.save("[a] every 1m => resume all", "  every never => dance  # soon")
    rules.ticks(at("12:00"), at("12:00:30"))
    events = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    (logged,) = [event for event in events if event["event"] == "rules.line_invalid"]
    assert (logged["line"], logged["raw"]) == (2, "  every never => dance  # soon")
    assert logged["level"] == "warning"


def test_a_rule_whose_line_becomes_invalid_is_removed(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.tick(at("12:00"))
    rules.save("[a] every 1m => resum all")
    rules.tick(at("12:00:10"))
    assert not RuleState.objects.exists()


def test_removing_the_file_removes_its_rules(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.tick(at("12:00"))
    (rules.project / FILE_NAME).unlink()
    assert rules.ticks(at("12:00:10"), at("12:02")) == []
    assert not RuleState.objects.exists()


def test_a_file_that_cannot_be_read_does_not_change_the_rules(rules: Rules):
    rules.save("[a] every 1m => resume all")
    rules.tick(at("12:00"))
    (rules.project / FILE_NAME).write_bytes(b"#" * 1_000_001)
    assert rules.ticks(at("12:00:10"), at("12:01")) == [("a", at("12:01"))]
    assert "more than 1,000,000" in book().problems[0]
    assert book().problems[0].startswith("scheduler.rules: ")
    assert "line 0" not in book().problems[0] + event_details("rules.invalid")[0]


def test_a_directory_in_the_place_of_the_file_is_reported_and_does_not_crash(
    rules: Rules, tmp_path: Path
):
    (tmp_path / FILE_NAME).mkdir()
    rules.tick(at("12:00"))
    assert "the file cannot be read: Is a directory" in book().problems[0]
    assert book().crashes == 0


def test_a_project_without_rules_costs_one_query_per_tick(
    rules: Rules, django_assert_num_queries: object
):
    with django_assert_num_queries(1):  # type: ignore[operator]
        rules.tick(at("12:00"))


def test_a_removed_rule_is_deleted_when_its_performing_process_is_gone(rules: Rules):
    rules.save('[a] every 1m => run "sleep 100"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    rules.save("# nothing")
    rules.ticks(at("12:01:10"), at("12:02"))
    assert (row("a").status, row("a").next_due_at) == ("run", None)
    RuleState.objects.update(held_by="elsewhere|boot|1|1.00", held_until=at("12:03"))
    rules.tick(at("12:02:50"))
    assert RuleState.objects.exists()
    rules.tick(at("12:03:10"))
    assert not RuleState.objects.exists()


def test_a_changed_rule_waits_for_the_running_action_of_its_old_text(rules: Rules):
    rules.save('[a] every 1m => run "sleep 100"')
    rules.holding = True
    rules.ticks(at("12:00"), at("12:01"))
    rules.save('[a] every 30s => run "sleep 100"')
    assert rules.ticks(at("12:01:10"), at("12:03")) == []
    assert row("a").status == "run"
    rules.end(ActionOutcome("exit code 0", exit_code=0), at("12:03"))
    assert rules.ticks(at("12:03:10"), at("12:03:40")) == [("a", at("12:03:10"))]


@pytest.mark.parametrize(
    "outcome",
    [ActionOutcome(problem="exit code 1", exit_code=1), ActionOutcome("exit code 0", exit_code=0)],
)
def test_the_outcome_of_the_old_text_does_not_count_for_the_changed_rule(
    rules: Rules, outcome: ActionOutcome
):
    rules.save('[a] at 1 12 * * * => run "false"')
    rules.tick(at("12:00:30"))
    rules.holding = True
    assert rules.tick(at("12:01")) == ["a"]
    rules.save('[a] every 1m => run "true"')
    rules.tick(at("12:01:10"))
    rules.end(outcome, at("12:02"))
    after = row("a")
    assert (after.status, after.reason, after.failures) == ("waiting", "", 0)
    assert (after.fired_at, after.exit_code, after.backoff_until) == (None, None, None)
    assert (after.held_by, after.next_due_at) == ("", at("12:02:10"))
    assert event_details("rule.failed") == []
    assert rules.ticks(at("12:02:10"), at("12:02:20")) == [("a", at("12:02:10"))]
