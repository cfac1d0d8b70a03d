"""The minutely snapshot of the machine and the heartbeats of runs."""

import pytest

from agents_app.maintenance.snapshots import take_snapshot
from agents_app.models import Heartbeat, MachineSnapshot, Run, RunOutput, Scheduler
from agents_app.runs.readiness import missing_processes, read_scheduler
from tests.agents_app.fleet import NOON, Fleet, at


def _running_run(fleet: Fleet, **worker: object) -> int:
    return fleet.start(fleet.enqueue(fleet.agent()), worker=fleet.worker(**worker)).run_id


def _print(fleet: Fleet, run_id: int, data: bytes, when=NOON, seq: int = 0) -> None:
    RunOutput.objects.create(
        tenant=fleet.tenant, run_id=run_id, seq=seq, stream=1, at=when, data=data
    )


def test_a_snapshot_counts_runs_work_and_workers(fleet: Fleet):
    agent = fleet.agent()
    fleet.start(fleet.enqueue(agent))
    fleet.enqueue(agent), fleet.enqueue(agent)
    take_snapshot(at(60))
    snapshot = MachineSnapshot.objects.get()
    assert (snapshot.active_runs, snapshot.queue_depth, snapshot.active_workers) == (1, 2, 1)
    assert snapshot.at == at(60)
    assert 0 <= snapshot.cpu_percent <= 100
    assert 0 < snapshot.memory_used_mb < snapshot.memory_total_mb
    assert snapshot.disk_free_mb > 0


@pytest.mark.parametrize(
    ("printed_at", "looked_at", "state"),
    [(None, 60, "alive"), (30, 60, "busy"), (30, 89, "busy"), (30, 90, "idle")],
)
def test_a_run_is_busy_while_it_prints_and_idle_a_minute_later(
    fleet: Fleet, printed_at, looked_at, state
):
    run_id = _running_run(fleet)
    if printed_at is not None:
        _print(fleet, run_id, b"hello", at(printed_at))
    take_snapshot(at(looked_at))
    assert Heartbeat.objects.get().state == state


def test_a_run_whose_worker_lost_its_lease_is_dead(fleet: Fleet):
    _running_run(fleet, lease_until=at(30))
    take_snapshot(at(60))
    assert Heartbeat.objects.get().state == "dead"


def test_a_heartbeat_shows_the_end_of_the_output(fleet: Fleet):
    run_id = _running_run(fleet)
    _print(fleet, run_id, b"first\n", seq=0)
    _print(fleet, run_id, b"x" * 5_000 + b"the end \xff\x00", seq=1)
    take_snapshot(at(1))
    shown = Heartbeat.objects.get().last_output
    assert "the end" in shown
    assert "\0" not in shown
    assert len(shown) <= 2_000


def test_a_heartbeat_names_its_run_its_worker_and_the_status_of_the_run(fleet: Fleet):
    run_id = _running_run(fleet)
    Run.objects.update(status_text="halfway")
    take_snapshot(at(60))
    beat = Heartbeat.objects.get()
    assert (beat.run_id, beat.worker, beat.tenant) == (run_id, fleet.workers[0], fleet.tenant)
    assert (beat.status_text, beat.at) == ("halfway", at(60))


def test_pending_runs_have_no_heartbeat(fleet: Fleet):
    fleet.enqueue(fleet.agent())
    take_snapshot(at(1))
    assert not Heartbeat.objects.exists()


def test_readiness_names_the_missing_processes(fleet: Fleet):
    assert missing_processes(read_scheduler(at(1)), at(1)) == ["worker", "beat"]


def test_a_worker_with_a_lease_and_a_recent_check_of_beat_are_ready(fleet: Fleet):
    far = at(days=100_000)
    fleet.worker(lease_until=far)
    Scheduler.objects.create(pk=1, last_check_at=far)
    assert missing_processes(read_scheduler(at(1)), at(1)) == []
