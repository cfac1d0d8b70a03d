"""Webhook sources of config.toml become rows, and filters of SKILL.md are checked by them."""

import pytest

from agents_app.models import Agent, WebhookSource
from agents_app.webhooks.source_index import read_source_index
from tests.agents_app.fleet import NOON, Fleet
from tests.agents_app.project_files import Project, the_agent

CONFIG = """
[webhooks.gh]
type = "github"
secrets = ["env:GH_HOOK", "file:secrets/gh"]

[webhooks.door]
type = "generic"
credential = "door"
header = "X-Door"
"""


@pytest.fixture(autouse=True)
def _tenant(fleet: Fleet) -> None:
    """The rows of a fleet that was there before."""


def the_source(name: str = "gh") -> WebhookSource:
    return WebhookSource.objects.get(name=name)


def test_sources_of_the_file_become_rows(project: Project):
    project.config(CONFIG)
    assert project.sync().errors == ()
    assert the_source().secret_refs == ["env:GH_HOOK", "file:secrets/gh"]
    assert (the_source("door").options, the_source("door").credential) == (
        {"header": "X-Door"},
        "door",
    )
    assert {source.name for source in read_source_index().sources} == {"gh", "door"}


def test_a_source_that_left_the_file_is_gone_until_it_is_back(project: Project):
    project.config(CONFIG)
    project.sync()
    project.config("")
    project.sync()
    assert read_source_index().sources == ()
    assert WebhookSource.objects.count() == 2
    project.config(CONFIG)
    project.sync()
    assert len(read_source_index().sources) == 2


def test_a_source_disabled_by_a_user_stays_disabled_when_the_file_changes(project: Project):
    project.config(CONFIG)
    project.sync()
    WebhookSource.objects.filter(name="gh").update(disabled_at=NOON)
    project.config(CONFIG + "\n[webhooks.more]\ntype = 'slack'\n")
    project.sync()
    assert {source.name for source in read_source_index().sources} == {"door", "more"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type = 'gihub'", "webhooks.gh.type: there is no provider 'gihub'"),
        ("type = 'generic'\nencoding = 'hexx'", "webhooks.gh.encoding: must be hex or base64"),
        ("type = 'github'\nheader = 'x'", "webhooks.gh.header: unknown option"),
        ("type = 'test'", "webhooks.gh.type: 'test' does not verify senders"),
        ("type = 'github'\nsecrets = 'hunter2-hunter2'", "must be a reference"),
        ("type = 'github'\nsecrets = ['env:']", "webhooks.gh.secrets.1: must be a reference"),
    ],
)
def test_an_invalid_source_is_refused_with_its_position(project: Project, text: str, said: str):
    project.config(f"[webhooks.gh]\n{text}\n")
    (error,) = project.sync().errors
    assert said in str(error)
    assert str(error).startswith("config.toml:")
    assert "hunter2" not in str(error)


def test_an_unknown_filter_is_refused_with_a_suggestion(project: Project):
    project.config(CONFIG)
    project.agent(frontmatter="webhooks:\n- source: gh\n  evnts: [issues]")
    (error,) = project.sync().errors
    assert "webhooks.1.evnts: unknown filter 'evnts'; did you mean 'events'?" in str(error)
    assert error.line


def test_filters_of_a_source_named_after_its_provider_are_checked_without_the_file(
    project: Project,
):
    project.agent(frontmatter="webhooks:\n- source: github\n  not_label: x")
    (error,) = project.sync().errors
    assert "did you mean 'not_labels'?" in str(error)


def test_filters_of_a_source_outside_the_file_are_not_checked(project: Project):
    project.agent(frontmatter="webhooks:\n- source: crm\n  anything: [x]")
    assert project.sync().errors == ()
    assert the_agent().webhooks == [{"source": "crm", "filters": {"anything": ["x"]}}]


def test_a_changed_type_makes_old_filters_an_error_and_the_old_definition_goes_on(
    project: Project,
):
    project.config(CONFIG)
    project.agent(frontmatter="webhooks:\n- source: gh\n  labels: [bug]")
    assert project.sync().errors == ()
    project.config(CONFIG.replace('"github"', '"sentry"'))
    assert "unknown filter 'labels'" in str(project.sync().errors[0])
    assert Agent.objects.get().webhooks == [{"source": "gh", "filters": {"labels": ["bug"]}}]
