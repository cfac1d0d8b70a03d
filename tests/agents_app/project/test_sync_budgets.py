"""Budgets and harnesses in files: read, refused, and in effect as soon as the file is saved."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from agents_app.budgets import holds
from agents_app.clock import HOST_ZONE
from agents_app.models import Run, Tenant
from tests.agents_app.fleet import NOON, Fleet, running
from tests.agents_app.project_files import Project, the_agent

CAP = "budget: {tokensPerDay: 100, usd_per_run: 2.5}"


@pytest.fixture
def synced(fleet: Fleet, project: Project) -> Project:
    project.agent(frontmatter=CAP)
    project.config('timezone = "UTC"\n[budget]\nusdPerMonth = 20\n')
    project.sync()
    return project


def test_caps_are_written_in_either_spelling(synced: Project):
    assert the_agent().budget == {"tokens_per_day": 100, "usd_per_run": 2.5}
    settings = Tenant.objects.get().settings
    assert (settings["budget"], settings["timezone"]) == ({"usd_per_month": 20}, "UTC")


def test_without_a_zone_of_the_project_a_day_is_the_hosts(fleet: Fleet, project: Project):
    project.config("scale = 3\n")
    project.sync()
    settings = Tenant.objects.get().settings
    assert settings["timezone"] == HOST_ZONE
    assert "budget" not in settings


@pytest.mark.parametrize(
    ("cap", "open_again"), [("budget: {tokens_per_day: 200}", True), ("", True), (CAP, False)]
)
def test_a_raised_budget_admits_queued_work_at_once(fleet: Fleet, synced: Project, cap, open_again):
    agent = the_agent()
    holds.record_usage(running(fleet, agent).pk, 150, 0, 0, 0, NOON)
    synced.agent(frontmatter=f"{cap}\nscale: 2")
    item = fleet.enqueue(agent)
    assert item.state == "queued"
    synced.sync()
    item.refresh_from_db()
    assert item.state == ("admitted" if open_again else "queued")
    assert (the_agent().over_budget_until is None) == open_again


def test_a_cap_below_the_usage_blocks_at_once(fleet: Fleet, synced: Project):
    run = running(fleet, the_agent())
    holds.record_usage(run.pk, 50, 0, 0, 0, NOON)
    synced.agent(frontmatter="budget: {tokens_per_day: 20}")
    synced.sync()
    assert the_agent().over_budget_until == datetime(2026, 3, 3, tzinfo=UTC)
    assert Run.objects.get(pk=run.pk).stop_requested_at == NOON


def test_a_raised_budget_of_the_project_admits_queued_work_at_once(fleet: Fleet, synced: Project):
    agent = the_agent()
    holds.record_usage(running(fleet, agent).pk, 0, 0, 0, 25, NOON)
    synced.agent(frontmatter="scale: 2")
    synced.sync()
    item = fleet.enqueue(agent)
    assert item.state == "queued"
    synced.config('timezone = "UTC"\n[budget]\nusdPerMonth = 30\n')
    synced.sync()
    item.refresh_from_db()
    assert item.state == "admitted"


def test_a_fleet_without_budgets_does_not_query_usage(
    fleet: Fleet, project: Project, django_assert_num_queries
):
    with connection.execute_wrapper(_no_usage):
        project.agent()
        project.sync()
        holds.sweep(NOON)


def _no_usage(execute, sql, params, many, context):
    assert "drover_usage" not in sql
    return execute(sql, params, many, context)
