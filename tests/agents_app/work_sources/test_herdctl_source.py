"""The work source of a herdctl agent claims an issue, with labels and token of its files."""

import json
from pathlib import Path

import pytest

from agents_app.models import Agent, Schedule
from agents_app.project import sync_project
from agents_app.secrets.credentials import set_credential
from agents_app.secrets.types import parse_name
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.formats.written import write
from tests.agents_app.work_sources.github_server import TOKEN, GitHubServer
from tests.agents_app.work_sources.polling import decided, finish, fire_and_poll, work_of

FILES = {
    "herdctl.yaml": (
        "defaults:\n  work_source: {type: github, labels: {ready: go, in_progress: doing}}\n"
        "agents:\n  - path: a.yaml\n"
    ),
    "a.yaml": (
        "name: a\nwork_source: {type: github, repo: o/r, auth: {token_env: BOT_TOKEN}}\n"
        "schedules:\n  issues: {type: interval, interval: 5m, prompt: Solve it.}\n"
    ),
}


@pytest.fixture
def issues(fleet: Fleet, github: GitHubServer, tmp_path: Path) -> Schedule:
    """The schedule of a herdctl project."""
    found = sync_project(write(tmp_path / "project", FILES), NOON)
    assert (found.errors, found.report) == ((), ())
    agent = Agent.objects.get(name="a")
    # herdctl has no field for the address of GitHub.
    Agent.objects.filter(pk=agent.pk).update(work_source={**agent.work_source, "url": github.url})
    return Schedule.objects.get(name="issues")


def test_an_issue_is_claimed_and_released_as_the_files_say(
    fleet: Fleet, github: GitHubServer, issues: Schedule, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BOT_TOKEN", TOKEN)
    issue = github.add(5, "Count the sheep", labels=("go",))
    firing = fire_and_poll(fleet, issues)
    assert decided(firing) == ("started", "")
    assert issue.labels == ["doing"]
    assert json.loads(work_of(firing).context)["title"] == "Count the sheep"
    assert {request.token for request in github.requests} == {TOKEN}
    finish(fleet, firing, "failed")
    assert (issue.state, issue.labels) == ("open", ["go"])


def test_without_the_variable_the_credential_of_its_name_is_used(
    fleet: Fleet, github: GitHubServer, issues: Schedule
):
    github.add(5, "Count the sheep", labels=("go",))
    assert decided(fire_and_poll(fleet, issues)) == ("skipped", "source_failed")
    (source,) = fleet.tenant.work_sources.all()
    assert "set the variable, or manage.py credential set bot_token" in source.last_error
    set_credential(fleet.tenant, parse_name("bot_token"), {"value": TOKEN}, "ann", NOON)
    assert decided(fire_and_poll(fleet, issues, at(minutes=5))) == ("started", "")
