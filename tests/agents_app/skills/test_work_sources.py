"""The field `work_source` of agents and schedules, and what is wrong with it."""

import pytest

from agents_app.models import Agent, Schedule
from tests.agents_app.project_files import Project

GITHUB = "work_source: {type: github, repo: o/r"


def columns(project: Project, frontmatter: str) -> Agent:
    project.agent("fixer", frontmatter)
    discovery = project.sync()
    assert discovery.errors == ()
    return Agent.objects.get()


def errors(project: Project, frontmatter: str) -> str:
    project.agent("fixer", frontmatter)
    return "\n".join(str(each) for error in project.sync().errors for each in error.each)


@pytest.mark.django_db
def test_a_work_source_of_an_agent_is_stored_with_its_defaults(project: Project):
    agent = columns(project, f"{GITHUB}, labels: {{ready: go}}}}\nschedule: 5m")
    assert agent.work_source == {
        "type": "github",
        "repo": "o/r",
        "labels": {"ready": "go", "in_progress": "agent-working"},
        "exclude_labels": ["blocked", "wip"],
        "cleanup_on_failure": True,
        "max_attempts": 3,
        "auth": "github_token",
        "url": "https://api.github.com",
    }
    assert Schedule.objects.get().work_source is None


@pytest.mark.django_db
def test_a_work_source_of_a_schedule_belongs_to_the_schedule(project: Project):
    source = "{type: directory, path: work}"
    agent = columns(project, f"schedules:\n  main:\n    interval: 5m\n    work_source: {source}")
    assert agent.work_source is None
    assert Schedule.objects.get().work_source == {
        "type": "directory",
        "path": "work",
        "max_attempts": 1,
        "cleanup_on_failure": True,
    }


@pytest.mark.django_db
def test_a_work_source_that_is_removed_from_the_file_is_removed(project: Project):
    assert columns(project, f"{GITHUB}}}").work_source is not None
    assert columns(project, "scale: 2").work_source is None


@pytest.mark.django_db
def test_the_spelling_of_herdctl_is_understood(project: Project):
    agent = columns(project, f"{GITHUB}, auth: {{token_env: GH}}, labels: {{inProgress: doing}}}}")
    assert agent.work_source is not None
    assert agent.work_source["auth"] == "env:GH"
    assert agent.work_source["labels"]["in_progress"] == "doing"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("frontmatter", "message"),
    [
        ("work_source: github", "work_source: must be a table"),
        ("work_source: {type: githib}", "did you mean 'github'?"),
        ("work_source: {repo: o/r}", "work_source.type: must be one of 'github'"),
        ("work_source: {type: github}", "work_source.repo: is missing"),
        ("work_source: {type: github, repo: r}", "work_source.repo: must be 'owner/name'"),
        (f"{GITHUB}, lables: {{}}}}", "did you mean 'labels'"),
        (f"{GITHUB}, labels: {{redy: x}}}}", "did you mean 'ready'"),
        (f"{GITHUB}, max_attempts: 0}}", "work_source.max_attempts: must be at least 1"),
        (f"{GITHUB}, url: ftp://x}}", "work_source.url: must be a URL"),
        (f"{GITHUB}, auth: a secret}}", "work_source.auth: must be a credential"),
    ],
)
def test_errors_name_the_field_and_the_remedy(project: Project, frontmatter, message):
    found = errors(project, frontmatter)
    assert message in found
    assert "SKILL.md:" in found
    assert "a secret" not in found
