"""Projects of herdctl run where they lie: names, merged fields, schedules, and a report."""

from agents_app.formats.herdctl.agent import TIMEOUT_SECONDS
from tests.agents_app.formats.written import agent_of, copied, errors_of, read, report_at, write

CLAUDE = ["claude", "-p", "--output-format", "stream-json", "--verbose"]


def test_a_small_project_is_read_without_a_change():
    found = read("newsroom")
    assert errors_of(found) == []
    assert (found.format, found.complete) == ("herdctl", True)
    assert [agent.name for agent in found.agents] == ["archive-keeper", "editor", "reporter"]


def test_variables_come_from_the_process_the_env_file_and_defaults():
    reporter = agent_of(read("newsroom"), "reporter")
    assert reporter.description == "Collects the news of Leipzig"
    assert "You write about Leipzig in German." in reporter.instructions
    other = agent_of(read("newsroom", NEWS_CITY="Halle", NEWS_LANGUAGE=""), "reporter")
    assert "You write about Halle in ." in other.instructions


def test_the_identity_comes_before_the_system_prompt():
    about = agent_of(read("newsroom"), "reporter").instructions.splitlines()
    assert about[:3] == [
        "Your name: Rita",
        "Your role: local reporter",
        "Your personality: brief and factual",
    ]


def test_claude_code_gets_the_merged_settings_as_arguments():
    found = read("newsroom")
    assert list(agent_of(found, "reporter").command) == [
        *CLAUDE,
        *("--model", "claude-sonnet-4-5", "--max-turns=40", "--permission-mode=acceptEdits"),
        *("--allowedTools=Read,Glob,Grep", "--disallowedTools=Bash(rm:*)"),
    ]
    assert list(agent_of(found, "editor").command)[5:8] == [
        *("--model", "claude-opus-4-1", "--max-turns=5"),
    ]
    keeper = list(agent_of(found, "archive-keeper").command)
    assert {"--tools=Read,Write", "--setting-sources=project,local"} <= set(keeper)
    assert agent_of(found, "reporter").harness == "claude-code"


def test_schedules_have_the_prompt_of_their_own_or_of_the_agent():
    found = read("newsroom")
    schedules = {one.name: one for one in agent_of(found, "reporter").schedules}
    assert {name: one.expression for name, one in schedules.items()} == {
        "feeds": "15m",
        "deep-dive": "0 6 * * 1",
        "mentions": "@chat",
    }
    assert schedules["feeds"].prompt == "Look for something new."
    assert schedules["deep-dive"].prompt == "Write the long article of the week."
    (nightly,) = agent_of(found, "archive-keeper").schedules
    assert nightly.prompt == "Execute your configured task."


def test_an_override_changes_one_field_of_a_schedule():
    schedules = {one.name: one for one in agent_of(read("newsroom"), "editor").schedules}
    assert schedules["evening"].expression == "30 18 * * 1-5"
    assert schedules["evening"].prompt == "Correct what was written today."
    assert not schedules["monthly"].enabled


def test_what_is_not_honoured_is_reported_with_file_and_line_and_kept():
    found = read("newsroom")
    reporter, keeper = "agents/reporter.yaml", "agents/archivist.yaml"
    assert sorted((line.file, line.field) for line in found.report) == [
        (keeper, "mcp_servers"),
        (keeper, "name"),
        (keeper, "repo"),
        (keeper, "working_directory"),
        (reporter, "chat"),
        (reporter, "default_prompt"),
        (reporter, "hooks.on_error.1.bot_token_env"),
        (reporter, "schedules.deep-dive.resume_session"),
        (reporter, "schedules.mentions.type"),
        ("herdctl.yaml", "session"),
        ("herdctl.yaml", "web"),
    ]
    token = report_at(found, reporter, "hooks.on_error.1.bot_token_env")
    assert (token.line, token.advice) == (38, "manage.py credential set slack_bot_token")
    assert "not honoured yet" in report_at(found, keeper, "mcp_servers").why
    assert "archive-keeper" in report_at(found, keeper, "name").advice
    kept = agent_of(found, "archive-keeper").metadata["herdctl"]
    assert not {"work_source", "hooks"} & kept.keys()
    # A reference, not the value of a secret.
    assert kept["mcp_servers"]["index"]["env"] == {"INDEX_TOKEN": "${INDEX_TOKEN}"}
    of_reporter = agent_of(found, "reporter").metadata["herdctl"]
    assert of_reporter["schedules"] == {"deep-dive": {"resume_session": True}}


def test_a_project_with_thirty_agents_in_nested_fleets_is_read():
    found = read("company")
    assert errors_of(found) == []
    names = [agent.name for agent in found.agents]
    assert len(names) == 30
    assert {"ceo-digest", "product-roadmap", "product-web-seo"} < set(names)
    # The name of a fleet: that of the reference, of the file, or of the directory.
    assert {"infra-backups", "infra-data-quality", "product-mobile-apps-crashes"} < set(names)
    assert {"support-triage", "product-web-a11y"} < set(names)


def test_defaults_of_outer_fleets_fill_the_gaps_of_inner_ones():
    found = read("company")
    inner = agent_of(found, "product-web-seo")
    assert {"--max-turns=25", "--allowedTools=Read,Edit"} <= set(inner.command)
    assert (inner.model, inner.scale) == ("claude-sonnet-4-5", 2)
    assert (inner.runtime.type, inner.runtime.image) == ("container", "example/claude:1")
    assert (inner.runtime.network, inner.runtime.memory) == ("none", "2g")
    assert (inner.runtime.pids_limit, dict(inner.env)) == (256, {"TEAM": "company"})
    assert agent_of(found, "ceo-digest").runtime.network == "bridge"
    assert agent_of(found, "expenses").scale == 5


def test_the_overrides_of_a_reference_hold_for_all_fleets_below():
    found = read("company")
    for name in ("infra-backups", "infra-data-quality"):
        agent = agent_of(found, name)
        assert (agent.model, agent.runtime.memory) == ("claude-opus-4-1", "4g")
    assert agent_of(found, "support-triage").runtime.type == "process"


def test_runs_have_a_day_unless_the_settings_of_drover_say_otherwise(tmp_path):
    assert agent_of(read("newsroom"), "editor").timeout_seconds == TIMEOUT_SECONDS
    root = copied("newsroom", tmp_path)
    write(root, {"config.toml": "timezone = 'Europe/Berlin'\n[local]\ntimeout = '10m'\n"})
    editor = agent_of(read(str(root)), "editor")
    assert editor.timeout_seconds == 600
    assert {one.timezone for one in editor.schedules} == {"Europe/Berlin"}


def test_directories_with_a_skill_file_are_named_and_not_read(tmp_path):
    root = copied("newsroom", tmp_path)
    write(root, {"agents/other/SKILL.md": "---\ncommand: 'true'\n---\nWork.\n"})
    found = read(str(root))
    assert len(found.agents) == 3
    assert report_at(found, "agents/other/SKILL.md", "").why.startswith("is not read")
