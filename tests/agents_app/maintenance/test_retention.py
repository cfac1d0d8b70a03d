"""Old rows go with everything that belongs to them; what is young or unfinished stays."""

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
    job = fleet.start(fleet.ask(fleet.agent(**agent)))
    RunOutput.objects.create(
        tenant=fleet.tenant, run_id=job.run_id, seq=0, stream=1, at=NOON, data=b"x"
    )
    fleet.finish(job)
    return Run.objects.get(pk=job.run_id)


def test_a_finished_run_goes_after_its_days_with_its_output_and_events(fleet: Fleet):
    _finished_run(fleet)
    remove_old_rows(at(days=14))
    assert Run.objects.count() == 1
    remove_old_rows(at(1, days=14))
    for table in (WorkItem, Run, RunOutput, RunEvent):
        assert not table.objects.exists(), table


def test_the_projects_own_number_of_days_is_kept(fleet: Fleet):
    Tenant.objects.update(settings={"history_retention_days": 2})
    _finished_run(fleet)
    remove_old_rows(at(1, days=2))
    assert not Run.objects.exists()


def test_each_tenant_has_its_own_days(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="other", settings={"history_retention_days": 30}))
    kept = _finished_run(other)
    _finished_run(fleet)
    remove_old_rows(at(days=20))
    assert list(Run.objects.all()) == [kept]


def test_what_is_unfinished_never_goes(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.ask(agent))
    fleet.ask(agent)
    remove_old_rows(at(days=400))
    assert (Run.objects.count(), WorkItem.objects.count()) == (1, 2)


def test_old_firings_go_and_undecided_ones_stay(fleet: Fleet):
    agent = fleet.agent(scale=0)
    schedule = fleet.schedule(agent)
    fleet.fire(schedule, NOON)
    undecided = fleet.firing(schedule, at(1))
    remove_old_rows(at(days=15))
    assert list(Firing.objects.all()) == [undecided]


def test_acts_of_people_go_after_the_same_days(fleet: Fleet):
    for day in (0, 10):
        RunEvent.objects.create(tenant=fleet.tenant, name="agent.paused", at=at(days=day))
    remove_old_rows(at(days=15))
    assert [event.at for event in RunEvent.objects.all()] == [at(days=10)]


@pytest.mark.parametrize(
    ("days", "left"), [(6, (1, 1, 1)), (8, (0, 1, 1)), (29, (0, 1, 1)), (31, (0, 0, 0))]
)
def test_signs_of_life_go_after_their_own_days(fleet: Fleet, days, left):
    run = fleet.start(fleet.ask(fleet.agent()))
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


def test_what_was_used_is_known_for_two_years(fleet: Fleet):
    agent = fleet.agent()
    for days in (0, 400, 733):
        Usage.objects.create(tenant=fleet.tenant, agent=agent, day=at(days=-days).date())
    remove_old_rows(NOON)
    assert Usage.objects.count() == 2


def test_more_rows_than_one_bite_all_go(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(module, "ROWS_IN_ONE_COMMIT", 3)
    for second in range(10):
        RunEvent.objects.create(tenant=fleet.tenant, name="agent.paused", at=at(second))
    remove_old_rows(at(days=15))
    assert not RunEvent.objects.exists()
