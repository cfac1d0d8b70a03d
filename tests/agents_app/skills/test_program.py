"""Which program an agent is: its own command, its harness's, its project's, in this order."""

import pytest

from tests.agents_app.skills.reading import agent, problem, problems, project

CLAUDE = ("claude", "-p", "--output-format", "stream-json", "--verbose")


@pytest.mark.parametrize(
    ("written", "config", "harness", "command"),
    [
        ("harness: claude-code", "", "claude-code", CLAUDE),
        ("command: mine", 'harness = "claude-code"', "claude-code", ("mine",)),
        ("harness: claude-code", 'command = "theirs"', "claude-code", CLAUDE),
        ("", 'command = "theirs"\nharness = "codex"', "codex", ("theirs",)),
        ("", 'harness = "claude-code"', "claude-code", CLAUDE),
        ("harness: claude-code", 'harness = "shell"', "claude-code", CLAUDE),
        ("harness: shell", "", "shell", ("sh", "./script.sh")),
        ("", "", None, ()),
    ],
)
def test_the_agent_goes_before_the_project_and_a_command_before_a_harness(
    written, config, harness, command
):
    spec = agent(written, project=project(config))
    assert (spec.harness, spec.command) == (harness, command)


def test_a_model_and_further_arguments_are_part_of_the_command():
    written = "harness: claude-code\nmodel: opus\nharnessArgs: [--max-turns, '3']"
    assert agent(written).command == (*CLAUDE, "--model", "opus", "--max-turns", "3")
    spec = agent("harness: codex\nmodel: gpt-5\nharness_args: [--sandbox, workspace-write]")
    assert spec.command[-5:] == ("--model", "gpt-5", "--sandbox", "workspace-write", "-")


def test_harness_fields_may_be_given_under_metadata():
    spec = agent("metadata:\n  harness: codex\n  model: gpt-5")
    assert spec.command[4:6] == ("--model", "gpt-5")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("harness: claude", "harness: must be 'claude-code', 'codex' or 'shell'"),
        ("model: --dangerous", "model: must be the name of a model, not '--dangerous'"),
        ("model: opus", "model: is only used with a harness; set `harness`"),
        ("harness_args: -v", "harness_args: is only used with a harness; set"),
        ("budget: {tokens_per_day: 0}", "budget.tokens_per_day: must be at least 1, not 0"),
        ("budget: {usd_per_run: -1}", "budget.usd_per_run: must be at least 0.01, not -1"),
        ("budget: {tokens_a_day: 5}", "budget.tokens_a_day: unknown field; did you mean"),
        ("budget: {usd_per_month: 5}", "budget.usd_per_month: unknown field"),
        ("runtime: {shared_writable: perhaps}", "runtime.shared_writable: must be true or false"),
    ],
)
def test_contradictory_fields_are_refused(written, reason):
    assert problem(agent, written).startswith(f"SKILL.md:2: {reason}")


def test_a_model_beside_a_command_is_refused():
    found = problems(agent, "harness: codex\ncommand: mine\nmodel: gpt-5")
    assert found == ["SKILL.md:4: model: is only used with a harness; put it into `command`"]


def test_the_shell_has_no_model():
    [found] = problems(agent, "harness: shell\nmodel: gpt-5")
    assert "the harness 'shell' has no model" in found


def test_caps_of_a_project_are_for_its_month():
    spec = project("[budget]\ntokensPerMonth = 1000\nusd_per_month = 5")
    assert (spec.budget.tokens_per_month, spec.budget.usd_per_month) == (1000, 5)
    assert agent("budget: {usdPerDay: 2}").budget.usd_per_day == 2
