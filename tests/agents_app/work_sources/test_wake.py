"""Webhooks wake the poll of a work source; nothing else does."""

import json

import pytest

from agents_app.models import Delivery, Schedule, WebhookSource
from agents_app.work_sources import claims
from agents_app.work_sources.wake import wake_schedules
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.work_sources.github_server import GitHubServer
from tests.agents_app.work_sources.polling import github_source, scheduled


@pytest.fixture
def schedule(fleet: Fleet, github: GitHubServer) -> Schedule:
    schedule = scheduled(fleet, github_source(github))
    Schedule.objects.update(next_fire_at=at(hours=1))
    claims.source_row(fleet.tenant.pk, schedule.agent.work_source)
    return schedule


def deliver(fleet: Fleet, number: int, **context: object) -> None:
    source, _ = WebhookSource.objects.get_or_create(
        tenant=fleet.tenant, name="github", defaults={"type": "github"}
    )
    Delivery.objects.create(
        tenant=fleet.tenant,
        source=source,
        provider="github",
        delivery_id=str(number),
        received_at=NOON,
        outcome="unmatched",
        headers="{}",
        body=b"{}",
        context=json.dumps(context),
    )


def next_fire(schedule: Schedule):
    schedule.refresh_from_db()
    return schedule.next_fire_at


def test_an_event_of_an_issue_makes_the_schedule_due_once(fleet: Fleet, schedule):
    deliver(fleet, 1, repo="O/R", event="issues")
    deliver(fleet, 2, repo="o/r", event="issues")
    assert wake_schedules(NOON) == 1
    assert next_fire(schedule) == NOON
    Schedule.objects.update(next_fire_at=at(hours=1))
    assert wake_schedules(at(5)) == 0


@pytest.mark.parametrize(
    "context", [{"repo": "o/other", "event": "issues"}, {"repo": "o/r", "event": "push"}, {}]
)
def test_other_deliveries_change_nothing(fleet: Fleet, schedule, context):
    deliver(fleet, 1, **context)
    assert wake_schedules(NOON) == 0
    assert next_fire(schedule) == at(hours=1)


def test_a_paused_schedule_is_not_woken(fleet: Fleet, schedule):
    Schedule.objects.update(state="paused")
    deliver(fleet, 1, repo="o/r", event="issues")
    assert wake_schedules(NOON) == 0


def test_deliveries_from_before_the_source_was_known_do_not_wake_it(
    fleet: Fleet, github: GitHubServer
):
    deliver(fleet, 1, repo="o/r", event="issues")
    schedule = scheduled(fleet, github_source(github))
    Schedule.objects.update(next_fire_at=at(hours=1))
    claims.source_row(fleet.tenant.pk, schedule.agent.work_source)
    assert wake_schedules(NOON) == 0
