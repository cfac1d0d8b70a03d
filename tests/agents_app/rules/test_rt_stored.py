"""Rules as rows: what was accepted once is understood again, and one that is not harms no other."""

import pytest

from agents_app.models import RuleState
from agents_app.rules.engine.listing import rule_lines
from agents_app.rules.language.line import LONGEST_LINE
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.ruling import Rules, at, book, row


def test_a_line_that_is_longer_as_it_is_stored_is_obeyed_like_any_other(rules: Rules, fleet: Fleet):
    message = r"\n" * 4900
    line = f'[long] every 1m => msg forge "{message}"'
    rules.save("[short] every 1m => resume all", line)
    fired = rules.ticks(at("12:00"), at("12:01"))
    assert len(line) < LONGEST_LINE < len(row("long").text)
    assert [name for name, _ in fired] == ["short", "long"]
    assert (book().errors, book().crashes) == ([], 0)
    assert rule_lines(fleet.tenant)[1].action == f'msg forge "{message}"'.replace("\\", "\\\\")


@pytest.mark.parametrize("text", ["[a] every 1m => dance", ""])
def test_a_stored_rule_that_is_not_understood_any_more_is_shown_and_left_out(
    rules: Rules, fleet: Fleet, caplog: pytest.LogCaptureFixture, text: str
):
    rules.save("[a] every 1m => resume all", "[b] every 1m => resume all")
    rules.tick(at("12:00"))
    RuleState.objects.filter(name="a").update(text=text)
    assert rules.ticks(at("12:00:10"), at("12:02")) == [("b", at("12:01")), ("b", at("12:02"))]
    assert book().crashes == 0
    told = [record.msg for record in caplog.records if "advice" in record.msg]
    assert [(one["rule"], one["text"]) for one in told] == [("a", text)]
    unknown, known = rule_lines(fleet.tenant)
    assert (unknown.trigger, unknown.condition, unknown.action) == ("not understood", "", text)
    assert known.trigger == "every 1m"
