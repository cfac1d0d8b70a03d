"""The audit names who did what; every entry of the journal is audited, or happens by itself."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

import scheduler_project.urls  # noqa: F401  # which finds the pages
from agents_app.accounts import logins, tenants
from agents_app.events import journal
from agents_app.models import Tenant
from agents_app.reports import AUDITED, AuditPeriod, read_audit
from agents_app.runs import control
from agents_app.schedules import edit
from agents_app.signals import messages
from tests.agents_app.admin.visitors import boss as boss
from tests.agents_app.fleet import NOON, Fleet, at
from tests.docs.generate.events import recorded

ALL = AuditPeriod()
# What Drover and running programs do without being told.
AUTOMATIC = {
    *("agent.over_budget", "agent.within_budget", "tenant.over_budget", "tenant.within_budget"),
    *("notify.given_up", "rule.failed", "rules.disabled", "rules.invalid", "work.overflowed"),
    *("run.admitted", "run.adopted", "run.called", "run.dead", "run.exit_requested", "run.failed"),
    *("run.given_back", "run.locked", "run.lost", "run.over_budget", "run.rerun_requested"),
    *("run.returned", "run.started", "run.stopped", "run.succeeded", "run.timed_out"),
    *("run.unlocked", "scheduler.stopped"),
}


def audited(tenant: Tenant | None, period: AuditPeriod = ALL) -> list[tuple[str, str]]:
    return [(entry.who, entry.what) for entry in read_audit(tenant, period)]


def test_every_entry_of_the_journal_is_audited_or_happens_by_itself():
    assert set(recorded()) == set(AUDITED) | AUTOMATIC
    assert not set(AUDITED) & AUTOMATIC


def test_the_author_is_found_in_every_form_of_detail(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON, "of noise: too much\nof it")
    control.resume_agent(agent, "token ci", NOON)
    schedule = edit.create(agent, edit.Draft(text="every monday", name="weekly"), "bob", NOON)
    edit.edit(schedule, {"prompt": "x"}, "bob", NOON)
    edit.pause(schedule, "carl", NOON, "a note")
    item = fleet.enqueue(agent, NOON)
    messages.send(agent, "hello", "dora", NOON)
    run = fleet.start(item)
    control.stop_run(agent.runs.get(pk=run.run_id), "eve", NOON)
    waiting = fleet.enqueue(agent, NOON)
    control.drop_work(waiting, "fred", NOON)
    assert audited(fleet.tenant) == [
        ("ann", "agent.paused"),
        ("token ci", "agent.resumed"),
        ("bob", "schedule.created"),
        ("bob", "schedule.edited"),
        ("carl", "schedule.paused"),
        ("dora", "agent.messaged"),
        ("eve", "run.stop_requested"),
        ("fred", "work.dropped"),
    ]


def test_what_a_limit_did_is_not_audited_and_what_a_run_did_is(fleet: Fleet):
    reasons = ("over its time limit", "stopped by itself")
    rows = (
        journal.JournalEntry("run.stop_requested", NOON, fleet.tenant.pk, None, 7, reason)
        for reason in reasons
    )
    journal.record(*rows)
    assert audited(fleet.tenant) == [("run 7", "run.stop_requested")]


def test_a_detail_without_an_author_is_not_left_out(fleet: Fleet):
    entry = journal.JournalEntry("work.dropped", NOON, fleet.tenant.pk, detail="odd")
    journal.record(entry)
    assert audited(fleet.tenant) == [("", "work.dropped")]


def test_changes_of_users_and_groups_and_logins_are_of_the_default_tenant(
    fleet: Fleet, boss: Client
):
    made, _ = tenants.create_tenant("acme", "ann", NOON)
    logins.record_failure(logins.begin_attempt("eve", "203.0.113.7", NOON), NOON)
    logins.record_success(logins.begin_attempt("eve", "203.0.113.7", NOON), NOON)
    logins.record_success(logins.begin_attempt("ann", "203.0.113.7", NOON), NOON)
    group = Group.objects.get(name="viewer")
    bob = User.objects.create_user("bob")
    form: dict[str, Any] = {"username": "bob", "date_joined_0": "2026-03-02"}
    form |= {"date_joined_1": "12:00:00", "groups": [group.pk]}
    assert boss.post(reverse("admin:auth_user_change", args=[bob.pk]), form).status_code == 302
    own = audited(fleet.tenant)
    assert own == [
        *(("eve", "login.failed"), ("eve", "login.succeeded"), ("ann", "login.succeeded")),
        ("ann", "user.changed"),
    ]
    assert audited(made) == [("ann", "tenant.created"), ("ann", "token.created")]
    assert len(audited(None)) == 6


def test_the_period_begins_with_its_start_and_ends_before_its_end(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON)
    control.resume_agent(agent, "bob", at(60))
    minute = timedelta(minutes=1)
    assert audited(fleet.tenant, AuditPeriod(NOON, NOON + minute)) == [("ann", "agent.paused")]
    assert audited(fleet.tenant, AuditPeriod(since=NOON + minute)) == [("bob", "agent.resumed")]
    [first] = read_audit(fleet.tenant, ALL, limit=1)
    assert first.who == "ann"


@pytest.mark.parametrize("name", sorted(AUDITED))
def test_entries_are_unique_and_serializable(fleet: Fleet, name: str):
    journal.record(*[journal.JournalEntry(name, NOON, fleet.tenant.pk, detail="ann: x: by y")] * 2)
    one, other = (entry.as_json() for entry in read_audit(fleet.tenant, ALL))
    assert one["id"] != other["id"]
    assert one["at"] == "2026-03-02T12:00:00.000Z"
