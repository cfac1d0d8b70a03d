"""Stored rules: the stored text is parsed again, and one that cannot be parsed affects no other."""

import pytest

from agents_app.models import RuleState
from agents_app.rules.engine.listing import rule_lines
from agents_app.rules.language.line_reader import MAX_LINE_LENGTH
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.engine.rules_clock import Rules, at, book, row


def test_a_rule_whose_stored_text_is_longer_than_a_line_may_be_fires(rules: Rules, fleet: Fleet):
    message = r"\n" * 4900
    line = f'[long] every 1m => msg forge "{message}"'
    rules.save("[short] every 1m => resume all", line)
    fired = rules.ticks(at("12:00"), at("12:01"))
    assert len(line) < MAX_LINE_LENGTH < len(row("long").text)
    assert [name for name, _ in fired] == ["short", "long"]
    assert (book().errors, book().crashes) == ([], 0)
    assert rule_lines(fleet.tenant)[1].action == f'msg forge "{message}"'.replace("\\", "\\\\")


@pytest.mark.parametrize("text", ["[a] every 1m => dance", ""])
def test_a_stored_rule_that_cannot_be_parsed_is_listed_and_does_not_fire(
    rules: Rules, fleet: Fleet, caplog: pytest.LogCaptureFixture, text: str
):
    rules.save("[a] every 1m => resume all", "[b] every 1m => resume all")
    rules.tick(at("12:00"))
    RuleState.objects.filter(name="a").update(text=text)
    assert rules.ticks(at("12:00:10"), at("12:02")) == [("b", at("12:01")), ("b", at("12:02"))]
    assert book().crashes == 0
    warnings = [record.msg for record in caplog.records if "advice" in record.msg]
    assert [(one["rule"], one["text"]) for one in warnings] == [("a", text)]
    unknown, known = rule_lines(fleet.tenant)
    assert (unknown.trigger, unknown.condition, unknown.action) == ("not understood", "", text)
    assert known.trigger == "every 1m"
