"""Old rows are deleted with their dependent rows; recent and unfinished rows are kept."""

from typing import Any

import pytest

from agents_app.maintenance import retention as module
from agents_app.maintenance.retention import remove_old_rows
from agents_app.models import (
    Firing,
    Heartbeat,
    MachineSnapshot,
    Run,
    RunEvent,
    RunOutput,
    Tenant,
    Usage,
    Worker,
    WorkItem,
)
from tests.agents_app.fleet import NOON, Fleet, at


def _finished_run(fleet: Fleet, **agent: Any) -> Run:
    job = fleet.start(fleet.enqueue(fleet.agent(**agent)))
    RunOutput.objects.create(
        tenant=fleet.tenant, run_id=job.run_id, seq=0, stream=1, at=NOON, data=b"x"
    )
    fleet.finish(job)
    return Run.objects.get(pk=job.run_id)


def test_an_old_finished_run_is_deleted_with_its_output_and_events(fleet: Fleet):
    _finished_run(fleet)
    remove_old_rows(at(days=14))
    assert Run.objects.count() == 1
    remove_old_rows(at(1, days=14))
    for table in (WorkItem, Run, RunOutput, RunEvent):
        assert not table.objects.exists(), table


def test_the_retention_days_of_the_project_are_used(fleet: Fleet):
    Tenant.objects.update(settings={"history_retention_days": 2})
    _finished_run(fleet)
    remove_old_rows(at(1, days=2))
    assert not Run.objects.exists()


def test_each_tenant_has_its_own_retention_days(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other", settings={"history_retention_days": 30}))
    kept = _finished_run(other)
    _finished_run(fleet)
    remove_old_rows(at(days=20))
    assert list(Run.objects.all()) == [kept]


def test_a_tenant_that_sets_no_retention_has_that_of_the_default_tenant(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other", settings={"timezone": "UTC"}))
    Tenant.objects.filter(pk=fleet.tenant.pk).update(settings={"history_retention_days": 30})
    kept = _finished_run(other)
    remove_old_rows(at(days=20))
    assert list(Run.objects.all()) == [kept]
    remove_old_rows(at(1, days=30))
    assert not Run.objects.exists()


def test_tenants_take_turns(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    """Many old rows of one tenant do not delay the removal of those of another."""
    monkeypatch.setattr(module, "ROWS_IN_ONE_COMMIT", 1)
    other = Fleet(Tenant.objects.create(name="other"))
    for _ in range(5):
        fleet.finish(fleet.start(fleet.enqueue(fleet.tenant.agents.first() or fleet.agent())))
    _finished_run(other)
    left: list[tuple[int, int]] = []

    def note(_removed: int) -> None:
        counts = [WorkItem.objects.filter(tenant=each.tenant).count() for each in (fleet, other)]
        left.append((counts[0], counts[1]))

    remove_old_rows(at(days=15), note)
    assert left[1] == (4, 0)
    assert left[-1] == (0, 0)


def test_unfinished_work_is_never_deleted(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent)
    remove_old_rows(at(days=400))
    assert (Run.objects.count(), WorkItem.objects.count()) == (1, 2)


def test_old_firings_are_deleted_except_undecided_ones(fleet: Fleet):
    agent = fleet.agent(scale=0)
    schedule = fleet.schedule(agent)
    fleet.fire(schedule, NOON)
    undecided = fleet.firing(schedule, at(1))
    remove_old_rows(at(days=15))
    assert list(Firing.objects.all()) == [undecided]


def test_events_of_users_are_deleted_after_the_same_days(fleet: Fleet):
    for day in (0, 10):
        RunEvent.objects.create(tenant=fleet.tenant, name="agent.paused", at=at(days=day))
    remove_old_rows(at(days=15))
    assert [event.at for event in RunEvent.objects.all()] == [at(days=10)]


@pytest.mark.parametrize(
    ("days", "left"), [(6, (1, 1, 1)), (8, (0, 1, 1)), (29, (0, 1, 1)), (31, (0, 0, 0))]
)
def test_heartbeats_snapshots_and_workers_have_their_own_retention_days(fleet: Fleet, days, left):
    run = fleet.start(fleet.enqueue(fleet.agent()))
    worker = fleet.worker(ended_at=NOON)
    Heartbeat.objects.create(
        tenant=fleet.tenant, worker=worker, run_id=run.run_id, state="alive", at=NOON
    )
    numbers = dict.fromkeys(
        ("cpu_percent", "memory_used_mb", "memory_total_mb", "disk_free_mb", "active_runs",
         "queue_depth", "active_workers"), 0,
    )  # fmt: skip
    MachineSnapshot.objects.create(host="here", at=NOON, **numbers)
    remove_old_rows(at(days=days))
    ended = Worker.objects.filter(ended_at__isnull=False)
    found = (Heartbeat.objects.count(), MachineSnapshot.objects.count(), ended.count())
    assert found == left
    assert Worker.objects.filter(ended_at__isnull=True).count() == 1


def test_usage_is_kept_for_two_years(fleet: Fleet):
    agent = fleet.agent()
    for days in (0, 400, 733):
        Usage.objects.create(tenant=fleet.tenant, agent=agent, day=at(days=-days).date())
    remove_old_rows(NOON)
    assert Usage.objects.count() == 2


def test_rows_of_several_batches_are_all_deleted(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(module, "ROWS_IN_ONE_COMMIT", 3)
    for second in range(10):
        RunEvent.objects.create(tenant=fleet.tenant, name="agent.paused", at=at(second))
    remove_old_rows(at(days=15))
    assert not RunEvent.objects.exists()
