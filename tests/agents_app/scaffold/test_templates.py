"""Every template is an agent that is discovered without an error, a remark or an unknown source."""

from dataclasses import asdict
from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.formats import read_project
from agents_app.rules.language.parse import parse_file
from agents_app.scaffold import TEMPLATES, NewAgent, Template, add_agent, create_project
from agents_app.scaffold.agent_templates import check_agent
from agents_app.skills import AgentSpec

BY_NAME = pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))


def check_discovered(project: Path, name: str, template: Template, harness: str) -> None:
    found = read_project(project, server={})
    assert (found.errors, found.report) == ((), ())
    agent = next(agent for agent in found.agents if agent.name == name)
    assert {one.source for one in agent.webhooks} <= {one.name for one in found.project.webhooks}
    assert [one.expression for one in agent.schedules] == (
        [template.schedule] if template.schedule else []
    )
    assert agent.description
    text = (project / "agents" / name / "SKILL.md").read_text()
    assert f"harness: {harness}" in text
    assert "@" not in text


@BY_NAME
def test_a_new_project_with_the_template_is_discovered_without_a_remark(
    template: Template, tmp_path: Path
) -> None:
    create_project(tmp_path / "new", NewAgent(name="first", template=template))
    check_discovered(tmp_path / "new", "first", template, template.harness)


@BY_NAME
def test_the_template_can_be_added_to_a_project_for_each_harness(
    template: Template, tmp_path: Path
) -> None:
    create_project(tmp_path / "new", NewAgent(name="first", template=TEMPLATES["script"]))
    harnesses = ["shell"] if template.harness == "shell" else ["claude-code", "codex"]
    for harness in harnesses:
        agent = NewAgent(name=f"of-{harness}", template=template, harness=harness)
        add_agent(tmp_path / "new", agent)
        check_discovered(tmp_path / "new", agent.name, template, harness)


def _caps(agent: AgentSpec) -> set[str]:
    return {name for name, cap in asdict(agent.budget).items() if cap is not None}


PROMPTS = [template for template in TEMPLATES.values() if template.harness != "shell"]


@pytest.mark.parametrize("template", PROMPTS, ids=[each.name for each in PROMPTS])
def test_a_prompt_has_the_limits_that_its_harness_keeps(template: Template, tmp_path: Path) -> None:
    """Codex reports no cost; Claude Code reports it with its last line, and has a cap itself."""
    for harness in ("claude-code", "codex"):
        agent = NewAgent(name="first", template=template, harness=harness)
        create_project(tmp_path / harness, agent)
    codex, claude = (
        read_project(tmp_path / harness, server={}).agents[0]
        for harness in ("codex", "claude-code")
    )
    assert _caps(codex) == {"tokens_per_day"}
    assert not codex.harness_args
    assert _caps(claude) == {"usd_per_day"}
    names = [argument.partition("=")[0] for argument in claude.harness_args]
    assert names == ["--permission-mode", "--allowedTools", "--max-budget-usd"]


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("nightly-report", {"Read", "Bash(git log *)", "Bash(drover *)"}),
        ("pr-reviewer", {"Read", "Bash(git *)", "Bash(gh *)", "Bash(drover *)"}),
        ("dependency-updater", {"Read", "Edit", "Write", "Bash"}),
        ("issue-worker", {"Read", "Edit", "Write", "Bash"}),
    ],
)
def test_claude_code_may_use_the_tools_of_the_task(
    name: str, tools: set[str], tmp_path: Path
) -> None:
    create_project(tmp_path / "new", NewAgent(name="first", template=TEMPLATES[name]))
    (agent,) = read_project(tmp_path / "new", server={}).agents
    (allowed,) = [one for one in agent.harness_args if one.startswith("--allowedTools=")]
    assert tools <= set(allowed.partition("=")[2].split(","))


def test_the_table_of_a_webhook_source_is_added_once(tmp_path: Path) -> None:
    create_project(tmp_path / "new", NewAgent(name="first", template=TEMPLATES["script"]))
    reviewer = TEMPLATES["pr-reviewer"]
    first = add_agent(tmp_path / "new", NewAgent(name="one", template=reviewer))
    second = add_agent(tmp_path / "new", NewAgent(name="two", template=reviewer))
    assert first == ["agents/one/SKILL.md", "config.toml"]
    assert second == ["agents/two/SKILL.md"]
    assert (tmp_path / "new" / "config.toml").read_text().count("[webhooks.github]") == 1


def test_the_examples_of_the_rules_are_valid_without_their_mark(tmp_path: Path) -> None:
    create_project(tmp_path / "new", NewAgent(name="first", template=TEMPLATES["script"]))
    text = (tmp_path / "new" / "scheduler.rules").read_text()
    assert parse_file(text).rules == ()
    examples = text.replace("# [", "[")
    parsed = parse_file(examples)
    assert len(parsed.rules) == 4
    assert not parsed.errors


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (NewAgent(name="No Name", template=TEMPLATES["script"]), "not a valid agent name"),
        (
            NewAgent(name="a", template=TEMPLATES["script"], schedule="sometimes"),
            "schedule 'sometimes': ",
        ),
        (
            NewAgent(name="a", template=TEMPLATES["script"], harness="codex"),
            "use the template nightly-report",
        ),
        (
            NewAgent(name="a", template=TEMPLATES["issue-worker"], harness="shell"),
            "use the template script",
        ),
        (
            NewAgent(name="a", template=TEMPLATES["pr-reviewer"], schedule="1h"),
            "leave the schedule out",
        ),
    ],
    ids=["name", "schedule", "prompt for a script", "script for a prompt", "webhook"],
)
def test_an_agent_that_could_not_run_is_refused(agent: NewAgent, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        check_agent(agent)


def test_an_invalid_config_is_not_extended(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("scale = [")
    with pytest.raises(Refused, match="Fix the file first; nothing was written"):
        add_agent(tmp_path, NewAgent(name="a", template=TEMPLATES["pr-reviewer"]))
    assert not (tmp_path / "agents").exists()
