"""What is on disk right now, with everything that is wrong; only --sync writes."""

from pathlib import Path

from agents_app.models import Agent
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
