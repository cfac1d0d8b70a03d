"""The audit names who did what; every entry of the journal is audited, or happens by itself."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import reverse

import scheduler_project.urls  # noqa: F401  # which finds the pages
from agents_app.accounts import logins, removal, tenants
from agents_app.events import journal
from agents_app.models import Run, RunEvent, Tenant, WorkItem
from agents_app.reports import AuditPeriod, read_audit
from agents_app.runs import control, dispatch
from agents_app.schedules import edit
from agents_app.signals import handlers, messages
from tests.agents_app.admin.visitors import boss as boss
from tests.agents_app.fleet import NOON, Fleet, at, live_run
from tests.agents_app.reports.audited_actions import ACTIONS, FORGED, OTHER, prepare
from tests.docs.generate.events import recorded

ALL = AuditPeriod()
# What Drover and running programs do without being told.
AUTOMATIC = {
    *("claim.ended", "claim.started", "run.notified"),
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
    assert set(recorded()) == set(ACTIONS) | AUTOMATIC
    assert not set(ACTIONS) & AUTOMATIC


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_no_name_of_an_object_changes_who_acted(fleet: Fleet, name: str):
    """Guard: the actor was found in the detail, which contains names and notes."""
    stage, by = prepare(fleet), "token x: by admin"
    known = set(RunEvent.objects.values_list("pk", flat=True))
    ACTIONS[name](stage, by)
    new = RunEvent.objects.exclude(pk__in=known).exclude(actor=OTHER)
    found = {(entry.who, entry.what) for entry in read_audit(None, ALL) if entry.who == by}
    assert (by, name) in found
    assert set(new.filter(name=name).values_list("actor", flat=True)) == {by}
    assert {entry.who for entry in read_audit(None, ALL)} <= {by, OTHER, FORGED}


def test_the_detail_of_an_event_names_the_actor_as_before(fleet: Fleet):
    agent = fleet.agent()
    control.pause_agent(agent, "ann", NOON, "of noise: too much\nof it")
    control.resume_agent(agent, "token ci", NOON)
    schedule = edit.create(agent, edit.Draft(text="every monday", name="weekly"), "bob", NOON)
    edit.edit(schedule, {"prompt": "x"}, "bob", NOON)
    edit.pause(schedule, "carl", NOON, "a note")
    run = fleet.start(fleet.enqueue(agent, NOON))
    messages.send(agent, "hello", "dora", NOON)
    control.stop_run(agent.runs.get(pk=run.run_id), "eve", NOON)
    tenants.scale_project(fleet.tenant, None, "fred", NOON)
    assert [(entry.who, entry.detail) for entry in read_audit(fleet.tenant, ALL)] == [
        ("ann", "ann: of noise: too much\nof it"),
        ("token ci", "token ci"),
        ("bob", "weekly: bob"),
        ("bob", "weekly: bob: prompt"),
        ("carl", "weekly: carl: a note"),
        ("dora", "by dora"),
        ("eve", "stopped by eve"),
        ("fred", "fred: no cap"),
    ]


def test_a_run_that_a_limit_or_a_newer_firing_stopped_is_not_audited(fleet: Fleet):
    """Guard: `replaced by a newer firing` was audited as a stop by `a newer firing`."""
    schedule = fleet.schedule(fleet.agent(), overlap="cancel_other")
    fleet.fire(schedule)
    fleet.start(WorkItem.objects.get())
    fleet.fire(schedule, at(60))
    late = fleet.start(fleet.enqueue(fleet.agent("late")))
    dispatch.request_stop([Run.objects.get(pk=late.run_id)], NOON, "over its time limit")
    stops = RunEvent.objects.filter(name="run.stop_requested").values_list("detail", flat=True)
    assert sorted(stops) == ["over its time limit", "replaced by a newer firing"]
    assert audited(fleet.tenant) == []


def test_the_stop_of_a_run_that_has_not_started_is_audited(fleet: Fleet):
    item = fleet.enqueue(fleet.agent())
    control.stop_run(live_run(item), "ann", NOON)
    assert audited(fleet.tenant) == [("ann", "run.stopped")]


def test_what_a_run_does_is_audited_with_its_number(fleet: Fleet):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    run = Run.objects.get(pk=job.run_id)
    handlers.schedule(run, NOON, "every monday at 09:00: report")
    handlers.shutdown(run, NOON)
    assert audited(fleet.tenant) == [
        (f"run {run.pk} of reporter", "schedule.created"),
        (f"run {run.pk}", "run.stop_requested"),
    ]


def test_runs_that_end_with_their_schedule_or_tenant_are_audited(fleet: Fleet):
    agent = fleet.agent(scale=2)
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    fleet.start(agent.work_items.get())
    removal.close_schedule(schedule, "ann", NOON)
    other = Fleet(tenants.create_tenant("acme", "bob", NOON)[0], fleet.workers)
    other.start(other.enqueue(other.agent()))
    tenants.close_tenant(other.tenant, "carl", NOON)
    assert ("ann", "run.stop_requested") in audited(fleet.tenant)
    assert ("carl", "run.stop_requested") in audited(other.tenant)


def test_a_page_reads_an_index_and_not_all_events(fleet: Fleet):
    rows = [RunEvent(tenant=fleet.tenant, name="run.started", at=at(n)) for n in range(3000)]
    rows += [
        RunEvent(tenant=fleet.tenant, name="agent.paused", at=at(n), actor="ann")
        for n in range(0, 3000, 10)
    ]
    RunEvent.objects.bulk_create(rows)
    *_, last = read_audit(fleet.tenant, ALL, limit=5)
    statements: list[tuple[str, Any]] = []

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(keep):
        page = list(read_audit(fleet.tenant, ALL, 10, last.id))
    assert [entry.at for entry in page] == [at(n) for n in range(50, 150, 10)]
    [(sql, params)] = [each for each in statements if '."at" ASC' in each[0]]
    assert "run_event_of_audit" in plan_of(sql, params)


def plan_of(sql: str, params: Any) -> str:
    """With the parameters of the statement: SQLite uses the index only if it knows the value."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE drover_run_event")
        word = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{word} {sql}", params)
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


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


def test_entries_are_unique_and_serializable(fleet: Fleet):
    journal.record(*[journal.JournalEntry("agent.paused", NOON, fleet.tenant.pk, actor="ann")] * 2)
    one, other = (entry.as_json() for entry in read_audit(fleet.tenant, ALL))
    assert one["id"] != other["id"]
    assert (one["at"], one["who"]) == ("2026-03-02T12:00:00.000Z", "ann")
