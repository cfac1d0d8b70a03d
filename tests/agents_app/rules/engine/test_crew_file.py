"""`.crew/scheduler.rules`, where Metateam has its rules, is read if the project has no other."""

import os
from pathlib import Path

import pytest

from agents_app.formats import read_project
from agents_app.rules.language import read_source, rules_file, rules_file_label
from tests.agents_app.formats.written import errors_of, read, report_at, write
from tests.agents_app.rules.engine.rules_clock import Rules, at, book

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


def test_the_files_of_a_crew_are_read_or_reported():
    found = read("shipyard")
    assert (found.format, found.agents, errors_of(found)) == ("metateam", (), [])
    assert [line.file for line in found.report] == [
        *(".crew/scheduler.state.json", ".crew/personas"),
    ]
    # With agents of its own, the project is one of Drover.
    assert (read("observatory").format, len(read("observatory").agents)) == ("drover", 3)


def test_the_state_file_of_the_crew_is_reported(tmp_path: Path):
    write(tmp_path, {".crew/scheduler.rules": RULE, ".crew/scheduler.state.json": "{}"})
    found = read_project(tmp_path)
    assert [line.file for line in found.report] == [".crew/scheduler.state.json"]


def test_the_rules_of_the_crew_fire(rules: Rules):
    write(rules.project, {".crew/scheduler.rules": "[a] every 5m => resume all\n"})
    assert rules.ticks(at("12:00"), at("12:05:10")) == [("a", at("12:05"))]


@pytest.mark.parametrize("name", ["scheduler.rules", ".crew/scheduler.rules"])
def test_a_fifo_is_not_waited_for(tmp_path: Path, name: str):
    (tmp_path / ".crew").mkdir()
    os.mkfifo(tmp_path / name)
    assert "it is not a regular file" in read_source(tmp_path / name).problem


def test_a_binary_file_of_the_crew_has_an_error_for_each_line_and_the_rest_works(rules: Rules):
    text = b"\x89PNG\r\n\x00\x01\n[a] every 5m => resume all\n" + b"\xff" * 50 + b"\n"
    write(rules.project, {".crew/scheduler.rules": text})
    assert rules.ticks(at("12:00"), at("12:05:10")) == [("a", at("12:05"))]
    assert [error["line"] for error in book().errors] == [1, 2, 4]
