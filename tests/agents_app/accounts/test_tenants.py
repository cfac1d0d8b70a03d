"""Disabled tenants fire no schedule; enabled ones continue; deleted ones leave no rows."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agents_app.accounts import tenants, tokens
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.installation import run_directories, state_directory
from agents_app.models import Firing, Run, RunEvent, Schedule, Tenant, WorkItem
from agents_app.schedules import due
from tests.agents_app.fleet import NOON, Fleet, at, run_states, work_states


def due_now(now: datetime) -> None:
    due.claim_due_schedules(now)


def next_fire(schedule: Schedule) -> datetime | None:
    schedule.refresh_from_db()
    return schedule.next_fire_at


# --- disable and enable ---------------------------------------------------------------------


def test_what_was_moved_on_fires_at_its_next_time_again(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "*/10 * * * *", next_fire_at=NOON)
    assert tenants.disable_tenant(fleet.tenant, "ann", at(-60))
    due_now(NOON)
    moved = next_fire(schedule)
    assert moved is not None and moved > at(hours=1)
    assert tenants.enable_tenant(fleet.tenant, "ann", at(minutes=3))
    assert next_fire(schedule) == at(minutes=10)
    assert not Run.objects.exists()


def test_an_interval_of_elapsed_time_keeps_its_rhythm(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "every 25 minutes", next_fire_at=NOON)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    due_now(NOON)
    tenants.enable_tenant(fleet.tenant, "ann", at(minutes=26))
    assert next_fire(schedule) == at(minutes=50)


def test_the_rhythm_never_makes_it_fire_at_once(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "every 25 minutes", next_fire_at=NOON)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    due_now(NOON)
    tenants.enable_tenant(fleet.tenant, "ann", at(minutes=25))
    assert next_fire(schedule) == at(minutes=50)


def test_an_interval_between_runs_waits_as_long_as_it_says(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), "15m", next_fire_at=NOON, interval_seconds=900)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    due_now(NOON)
    tenants.enable_tenant(fleet.tenant, "ann", at(minutes=5))
    assert next_fire(schedule) == at(minutes=20)


def test_one_that_was_not_due_meanwhile_stays_as_it_is(fleet: Fleet):
    later = at(days=3)
    schedule = fleet.schedule(fleet.agent(), "0 * * * *", next_fire_at=later)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    due_now(at(minutes=1))
    tenants.enable_tenant(fleet.tenant, "ann", at(minutes=2))
    assert next_fire(schedule) == later


def test_a_one_shot_that_was_paused_for_it_fires_when_the_tenant_is_back(fleet: Fleet):
    values = {"one_shot": True, "next_fire_at": NOON}
    schedule = fleet.schedule(fleet.agent(), "at 2026-03-02T12:00:00Z", **values)
    tenants.disable_tenant(fleet.tenant, "ann", at(-60))
    due_now(NOON)
    schedule.refresh_from_db()
    assert schedule.state == "paused"
    now = at(minutes=5)
    tenants.enable_tenant(fleet.tenant, "ann", now)
    assert (next_fire(schedule), schedule.state) == (now, "active")
    due_now(now)
    assert Firing.objects.get(outcome="").schedule == schedule


def test_what_a_person_paused_stays_paused(fleet: Fleet):
    paused = fleet.schedule(fleet.agent(), state="paused", pause_note="holidays")
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    tenants.enable_tenant(fleet.tenant, "ann", at(1))
    paused.refresh_from_db()
    assert paused.state == "paused"


def test_an_invalid_schedule_delays_no_other_schedule(fleet: Fleet):
    agent = fleet.agent()
    broken = fleet.schedule(agent, "0 * * * *", name="broken", next_fire_at=NOON)
    fine = fleet.schedule(agent, "*/10 * * * *", name="fine", next_fire_at=NOON)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    due_now(NOON)
    Schedule.objects.filter(pk=broken.pk).update(expression="of another Drover")
    assert tenants.enable_tenant(fleet.tenant, "ann", at(60))
    assert next_fire(fine) == at(minutes=10)


def test_what_waits_starts_when_the_tenant_is_enabled(fleet: Fleet):
    agent = fleet.agent(scale=1)
    busy = fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    tenants.disable_tenant(fleet.tenant, "ann", NOON)
    fleet.finish(busy)
    assert work_states(agent) == ["done", "queued"]
    with pytest.raises(Refused, match="tenant is disabled"):
        fleet.enqueue(agent)
    tenants.enable_tenant(fleet.tenant, "ann", at(1))
    assert work_states(agent) == ["done", "admitted"]


def test_a_repeated_request_has_no_effect_and_records_no_event(fleet: Fleet):
    assert not tenants.enable_tenant(fleet.tenant, "ann", NOON)
    assert tenants.disable_tenant(fleet.tenant, "ann", NOON)
    assert not tenants.disable_tenant(fleet.tenant, "bob", at(1))
    fleet.tenant.refresh_from_db()
    assert fleet.tenant.disabled_at == NOON
    assert [event.detail for event in RunEvent.objects.all()] == ["ann"]


# --- create and delete ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Acme", "a b", "a/b", "x" * 65, "\N{SNOWMAN}", "default"])
def test_a_name_that_cannot_be_one_is_refused(fleet: Fleet, name: str):
    with pytest.raises(Refused):
        tenants.create_tenant(name, "ann", NOON)
    assert Tenant.objects.count() == 1


def test_a_new_tenant_has_a_token_that_is_found_by_its_secret(fleet: Fleet):
    tenant, made = tenants.create_tenant("acme", "ann", NOON)
    found = tokens.find_token(made.secret, NOON)
    assert found is not None and found.tenant == tenant
    assert tokens.revoke_token(found, "ann", NOON)
    assert tokens.find_token(made.secret, NOON) is None
    assert not tokens.revoke_token(found, "ann", NOON)


def test_the_project_s_own_tenant_is_never_deleted(fleet: Fleet):
    with pytest.raises(Refused, match="owns the project"):
        tenants.delete_tenant(fleet.tenant, "ann", NOON)


def test_a_tenant_is_deleted_in_bites_when_its_runs_have_ended(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agents_app.accounts.removal.ROWS_IN_ONE_COMMIT", 2)
    acme = Fleet(tenants.create_tenant("acme", "ann", NOON)[0])
    agent = acme.agent(scale=2)
    schedule = acme.schedule(agent)
    for minute in range(5):
        acme.fire(schedule, at(minutes=minute))
    job = acme.start(acme.enqueue(agent))
    with pytest.raises(Refused, match="still ending"):
        tenants.delete_tenant(acme.tenant, "ann", NOON)
    assert Run.objects.get(pk=job.run_id).stop_requested_at is not None
    assert run_states(agent).count("stopped") == 1
    acme.finish(job, "stopped")
    tenants.delete_tenant(acme.tenant, "ann", NOON + timedelta(seconds=1))
    assert list(Tenant.objects.all()) == [fleet.tenant]
    assert not WorkItem.objects.exists() and not Run.objects.exists()
    assert not Firing.objects.exists()
    assert RunEvent.objects.get().name == "tenant.deleted"


def test_the_files_of_a_deleted_tenant_are_removed_and_its_project_stays(
    fleet: Fleet, tmp_path: Path
):
    (tmp_path / "agents").mkdir()
    acme = Fleet(tenants.create_tenant("acme", "ann", NOON, str(tmp_path))[0])
    kept, removed = list[Path](), list[Path]()
    for each, paths in ((fleet, kept), (acme, removed)):
        agent = each.agent("reporter")
        job = each.start(each.enqueue(agent))
        each.finish(job)
        workdir = run_directories(CONF.data) / str(job.run_id)
        paths += [state_directory(CONF.data, agent.pk), workdir]
    for path in (*kept, *removed):
        path.mkdir(parents=True)
        (path / "file").write_text("x")
    try:
        tenants.delete_tenant(acme.tenant, "ann", NOON)
        assert [path.exists() for path in kept] == [True, True]
        assert [path.exists() for path in removed] == [False, False]
        assert (tmp_path / "agents").is_dir()
    finally:
        for path in (*kept, *removed):
            shutil.rmtree(path, ignore_errors=True)
