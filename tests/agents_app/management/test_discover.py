"""What is on disk right now, with everything that is wrong; only --sync writes."""

from pathlib import Path

from agents_app.models import Agent, Tenant, WebhookSource
from tests.agents_app.management.calling import call
from tests.agents_app.management.conftest import write_agent

GOOD = "---\ndescription: Says hello\ncommand: [echo, hello]\nschedule: 15m\n---\nSay hello.\n"
BAD = "---\ncommand: [echo]\nscal: 2\n---\nx\n"


def test_agents_are_listed_and_nothing_is_written(project: Path, transactional_db: None):
    write_agent(project, "greeter", GOOD)
    said = call("discover")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[2].split()[:3] == ["greeter", "1", "15m"]
    assert not Agent.objects.exists()


def test_sync_writes_what_was_found(project: Path, transactional_db: None):
    write_agent(project, "greeter", GOOD)
    assert call("discover", "--sync", "--json").json["synced"] is True
    assert Agent.objects.get().command == ["echo", "hello"]


def test_an_error_says_file_line_and_reason_and_fails(project: Path, transactional_db: None):
    write_agent(project, "greeter", GOOD)
    write_agent(project, "typo", BAD)
    said = call("discover")
    assert said.code == 1
    assert said.err.startswith("agents/typo/SKILL.md:3: ")
    assert "scale" in said.err
    assert "greeter" in said.out


def test_json_has_the_same(project: Path, transactional_db: None):
    write_agent(project, "greeter", GOOD)
    write_agent(project, "typo", BAD)
    said = call("discover", "--json")
    assert said.code == 1
    (agent,) = said.json["agents"]
    assert (agent["name"], agent["command"]) == ("greeter", ["echo", "hello"])
    assert agent["schedules"][0]["expression"] == "15m"
    (error,) = said.json["errors"]
    assert (error["agent"], error["path"], error["line"]) == ("typo", "agents/typo/SKILL.md", 3)


def test_an_error_in_the_rules_says_file_line_and_reason_and_fails(
    project: Path, transactional_db: None
):
    write_agent(project, "greeter", GOOD)
    (project / ".crew").mkdir()
    (project / ".crew" / "scheduler.rules").write_text("[a] every 1m => resume all\n[b] sumon x\n")
    said = call("discover")
    assert said.code == 1
    assert said.err.startswith(".crew/scheduler.rules: line 2, column ")
    (error,) = call("discover", "--json").json["rule_errors"]
    assert error["line"] == 2
    (project / ".crew" / "scheduler.rules").write_text("[a] every 1m => resume all\n")
    assert call("discover").code == 0


WAITING = "---\ncommand: [echo]\nwebhooks:\n  - source: {source}\n---\nx\n"


def test_a_webhook_source_that_does_not_exist_is_an_error(project: Path, transactional_db: None):
    """Guard: an agent that waits for such a source never runs, and nothing said so."""
    (project / "config.toml").write_text("[webhooks.github]\ntype = 'github'\n")
    write_agent(project, "near", WAITING.format(source="githob"))
    write_agent(project, "far", WAITING.format(source="billing"))
    write_agent(project, "right", WAITING.format(source="github"))
    said = call("discover", "--sync", "--json")
    assert said.code == 1
    assert [(error["agent"], error["reason"]) for error in said.json["errors"]] == [
        (
            "far",
            "webhooks.1.source: there is no webhook source 'billing': add [webhooks.billing] to "
            "config.toml, or create the source in the dashboard",
        ),
        (
            "near",
            "webhooks.1.source: there is no webhook source 'githob': did you mean 'github'?",
        ),
    ]
    # The source may be created later: the agents are defined.
    assert not Agent.objects.exclude(definition_error="").exists()
    assert Agent.objects.count() == 3


def test_a_webhook_source_of_the_dashboard_exists(project: Path, transactional_db: None):
    write_agent(project, "far", WAITING.format(source="billing"))
    assert call("discover", "--sync").code == 1
    tenant = Tenant.objects.get()
    WebhookSource.objects.create(tenant=tenant, name="billing", type="generic", origin="person")
    assert call("discover").code == 0


def test_the_format_and_what_is_not_honoured_are_said(project: Path, transactional_db: None):
    (project / "herdctl.yaml").write_text("agents: [{path: a.yaml}]\n")
    (project / "a.yaml").write_text("name: a\nrepo: x/y\n")
    said = call("discover")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].endswith("(format herdctl): 1 agent")
    assert lines[-2:] == [
        "not honoured (1):",
        "  a.yaml:2: repo: is not honoured yet; let the instructions clone the repository",
    ]
    described = call("discover", "--json").json
    assert described["format"] == "herdctl"
    (line,) = described["not_honoured"]
    assert (line["file"], line["line"], line["field"]) == ("a.yaml", 2, "repo")


def test_a_project_of_drover_has_nothing_to_report(project: Path, transactional_db: None):
    write_agent(project, "greeter", GOOD)
    described = call("discover", "--json").json
    assert (described["format"], described["not_honoured"]) == ("drover", [])
