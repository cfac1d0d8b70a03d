"""Scheduled calls of Claude Code and Codex in shell scripts."""

import pytest

from agents_app.formats.imported import Imported
from agents_app.formats.shell_scripts import looks_like_script, read_script
from tests.agents_app.formats.reading import CONTEXT, lines_of


def read(text: str) -> Imported:
    return read_script("scripts/triage.sh", f"#!/bin/bash\n{text}\n", CONTEXT)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("while true; do\n  claude -p 'Triage'\n  sleep 3600\ndone", "1h"),
        ("while :\ndo\n  claude -p 'Triage'\n  sleep 15m\ndone", "15m"),
        ("while true; do claude -p 'Triage'; sleep 90; done", "90s"),
        ("while sleep 2h; do\n  claude -p 'Triage'\ndone", "2h"),
        ("watch -n 300 claude -p Triage", "5m"),
        ("watch -n 300 'claude -p Triage'", "5m"),
    ],
)
def test_a_loop_is_an_interval_from_the_end_of_each_run(text, expression):
    (agent,) = read(text).agents
    assert (agent.name, agent.harness, agent.body) == ("triage", "claude-code", "Triage")
    assert [schedule.expression for schedule in agent.schedules] == [expression]
    assert agent.line == 2


def test_a_loop_that_does_more_stays_a_script():
    text = "while true; do\n  git pull\n  codex exec 'Fix the tests'\n  sleep 1d\ndone"
    (agent,) = read(text).agents
    assert (agent.harness, agent.body) == ("shell", "git pull\ncodex exec 'Fix the tests'\n")
    assert agent.schedules[0].expression == "1d"


@pytest.mark.parametrize(
    "text",
    [
        """(crontab -l; echo "0 9 * * 1-5 claude -p 'Triage'") | crontab -""",
        "crontab - <<END\n0 9 * * 1-5 claude -p 'Triage'\nEND",
    ],
)
def test_a_crontab_that_the_script_installs_is_read(text):
    (agent,) = read(text).agents
    assert (agent.harness, agent.body) == ("claude-code", "Triage")
    assert agent.schedules[0].expression == "0 9 * * 1-5"


def test_a_call_without_a_schedule_is_reported_with_its_line():
    found = read("# claude\nclaude -p 'Triage'")
    assert (found.agents, lines_of(found.report, "command")) == ((), [3])
    assert [error.field for error in found.errors] == ["script"]


def test_a_loop_without_a_known_interval_is_reported():
    found = read("while true; do\n  claude -p 'Triage'\n  sleep $DELAY\ndone")
    assert (found.agents, lines_of(found.report, "sleep")) == ((), [2])


@pytest.mark.parametrize(
    "text", ["", "while true; do", "done\ndone", "echo 'x", "while true; do :; done"]
)
def test_other_scripts_have_nothing_to_import(text):
    assert read(text).agents == ()


def test_scripts_are_recognised_by_name_or_first_line():
    assert looks_like_script("a.sh", "")
    assert looks_like_script("a", "#!/usr/bin/env bash\n")
    assert not looks_like_script("a", "#!/usr/bin/python3\n")
    assert not looks_like_script("crontab", "0 1 * * * /bin/sh\n")
