"""`.crew/scheduler.rules`, where Metateam has its rules, is read if the project has no other."""

from pathlib import Path

from agents_app.formats import read_project
from agents_app.rules.language import read_source, rules_file, rules_file_label
from tests.agents_app.formats.written import report_at, write
from tests.agents_app.rules.engine.rules_clock import Rules, at

RULE = '[tidy] every 5m => run "true"\n'


def test_the_file_of_the_crew_is_used_where_there_is_no_other(tmp_path: Path):
    assert rules_file_label(tmp_path) == "scheduler.rules"
    write(tmp_path, {".crew/scheduler.rules": RULE})
    assert rules_file_label(tmp_path) == ".crew/scheduler.rules"
    assert read_source(rules_file(tmp_path)).text == RULE


def test_the_file_of_the_project_wins_and_the_other_is_reported(tmp_path: Path):
    write(tmp_path, {".crew/scheduler.rules": RULE, "scheduler.rules": "# none\n"})
    assert rules_file_label(tmp_path) == "scheduler.rules"
    found = read_project(tmp_path)
    assert "is not read" in report_at(found, ".crew/scheduler.rules", "").why


def test_the_state_file_of_the_crew_is_reported(tmp_path: Path):
    write(tmp_path, {".crew/scheduler.rules": RULE, ".crew/scheduler.state.json": "{}"})
    found = read_project(tmp_path)
    assert [line.file for line in found.report] == [".crew/scheduler.state.json"]


def test_the_rules_of_the_crew_fire(rules: Rules):
    write(rules.project, {".crew/scheduler.rules": "[a] every 5m => resume all\n"})
    assert rules.ticks(at("12:00"), at("12:05:10")) == [("a", at("12:05"))]
