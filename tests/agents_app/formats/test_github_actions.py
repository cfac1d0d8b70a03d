"""GitHub Actions workflows: their schedules in UTC, and their steps as work that remains."""

from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from agents_app.formats.github_actions import looks_like_workflow, read_workflows
from agents_app.formats.imported import Imported
from agents_app.formats.source_files import SourceFile
from tests.agents_app.formats.reading import CONTEXT, MONTH, NOW, lines_of, new_month, old_month

WORKFLOW = """name: Nightly
on:
  push:
    branches: [main]
  schedule:
    - cron: '30 5 * * 1-5'
    - cron: "0 0 1,15 * 5"
permissions: read-all
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Test
        run: |
          make test
          echo 'done'
"""
CLAUDE = """on:
  schedule: [{cron: '0 8 * * *'}]
jobs:
  triage:
    steps:
      - uses: anthropics/claude-code-action@v1
        with:
          prompt: Triage the new issues.
"""


def read(text: str) -> Imported:
    return read_workflows([SourceFile(".github/workflows/nightly.yml", text)], CONTEXT)


def is_this_month(fire: datetime) -> bool:
    return fire <= NOW + MONTH


def test_each_cron_is_a_schedule_in_utc():
    (agent,) = read(WORKFLOW).agents
    assert (agent.name, agent.description) == ("nightly", "Workflow Nightly")
    for schedule, text in zip(agent.schedules, ("30 5 * * 1-5", "0 0 1,15 * 5"), strict=True):
        assert (schedule.expression, schedule.timezone) == (text, "UTC")
        fires = CronSim(text, NOW.astimezone(ZoneInfo("UTC")))
        expected = [fire.astimezone(UTC) for fire in takewhile(is_this_month, fires)]
        assert old_month(schedule, NOW) == new_month(schedule, NOW) == expected


def test_steps_and_other_triggers_are_reported_with_their_lines():
    report = read(WORKFLOW).report
    assert lines_of(report, "jobs.build.steps.1") == [13]
    assert lines_of(report, "jobs.build.steps.2") == [14]
    assert lines_of(report, "on.push") == [3]
    assert lines_of(report, "permissions") == [8]


def test_fields_of_jobs_and_expressions_in_prompts_are_reported():
    assert lines_of(read(WORKFLOW).report, "jobs.build.runs-on") == [11]
    prompt = "Triage ${{ github.ref }}."
    found = read(CLAUDE.replace("Triage the new issues.", prompt))
    assert found.agents[0].body == prompt
    assert lines_of(found.report, "jobs.triage.steps.1.with") == [7]


def test_the_skeleton_fails_until_it_is_written_and_shows_the_steps():
    (agent,) = read(WORKFLOW).agents
    assert agent.needs_work
    assert (agent.harness, agent.body.splitlines()[-1]) == ("shell", "exit 13")
    assert "#   make test\n#   echo 'done'\n" in agent.body


def test_no_text_of_a_workflow_becomes_a_command():
    text = WORKFLOW.replace("name: Test", 'name: "x\\nrm -r /"')
    body = read(text).agents[0].body.splitlines()
    assert [line for line in body if not line.startswith(("#", "echo ", "exit "))] == []


def test_the_prompt_of_claude_code_is_the_prompt_of_the_agent():
    (agent,) = read(CLAUDE).agents
    assert (agent.harness, agent.body) == ("claude-code", "Triage the new issues.")
    assert agent.needs_work


def test_times_that_github_does_not_reach_are_reported():
    found = read(CLAUDE.replace("0 8 * * *", "* * * * *"))
    assert lines_of(found.report, "on.schedule.1.cron") == [2]


@pytest.mark.parametrize("text", ["on: push\njobs: {}\n", "on: [push, pull_request]\njobs: {}\n"])
def test_a_workflow_without_a_schedule_is_left_out(text):
    assert read(text) == Imported()
    assert looks_like_workflow(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("on:\n  schedule: daily\njobs: {}\n", 2),
        ("on:\n  schedule:\n    - '0 8 * * *'\njobs: {}\n", 3),
        ("on:\n  schedule:\n    - cron: 5\njobs: {}\n", 3),
        ("on:\n  schedule:\n    - cron: '61 * * * *'\njobs: {}\n", 3),
        ("on:\n  schedule:\n    - cron: '0 8 * * *'\njobs: []\n", 4),
        ("on:\n  schedule:\n\t- cron: x\n", 3),
        ("- on\n", 0),
        ("on: {schedule: [{cron: *a}]}\n", 1),
        ("\x00", 1),
    ],
)
def test_wrong_types_and_syntax_are_reported_with_their_lines(text, line):
    found = read(text)
    assert [error.line for error in found.errors][:1] == [line]
