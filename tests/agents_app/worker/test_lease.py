"""The lease of a worker: renewed, drained, ended, or taken away."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from django.db import OperationalError

from agents_app.conf import CONF, ROOT
from agents_app.models import Run, Worker
from agents_app.runners.base import RunControl
from agents_app.runs import dispatch
from agents_app.worker.lease import Lease, boot_id, this_host
from tests.agents_app.fleet import NOON, Fleet
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for


@pytest.fixture
def lease(durable_fleet: Fleet) -> Iterator[Lease]:
    held = Lease("worker@here", 7)
    yield held
    held.end()


def test_a_worker_registers_its_host_and_process(lease: Lease):
    worker = Worker.objects.get()
    assert (worker.name, worker.concurrency, worker.state) == ("worker@here", 7, "alive")
    assert (worker.host, worker.boot_id) == (this_host(), boot_id())
    assert worker.pid == psutil.Process().pid
    ahead = (worker.lease_until - datetime.now(UTC)).total_seconds()
    assert 0 < CONF.lease_seconds - ahead < 5


def test_a_renewed_lease_ends_later(lease: Lease):
    Worker.objects.update(lease_until=NOON)
    lease._renew()
    assert Worker.objects.get().lease_until > datetime.now(UTC) + timedelta(
        seconds=CONF.lease_seconds - 5
    )


def test_only_a_renewed_lease_is_reported_to_the_guard(lease: Lease, monkeypatch):
    reported: list[str] = []
    monkeypatch.setattr(lease.guard_pipe, "lease_renewed", lambda: reported.append("renewed"))
    lease._renew()
    assert reported == ["renewed"]


def _running(fleet: Fleet, lease: Lease) -> tuple[Run, RunControl]:
    worker = Worker.objects.get(pk=lease.host.worker_id)
    job = fleet.start(fleet.enqueue(fleet.agent()), worker=worker)
    control = RunControl()
    lease.host.live[job.run_id] = control
    return Run.objects.get(pk=job.run_id), control


def test_a_total_that_cannot_be_stored_is_kept_and_does_not_affect_the_lease(
    lease: Lease, monkeypatch
):
    """Guard: the error was logged as a lease that was not renewed, and lost runs stayed."""

    def refuse(*_: object) -> None:
        raise OperationalError("locked")

    ended: list[bool] = []
    lease.host.hints.claim_noops.append(1)
    monkeypatch.setattr("agents_app.worker.lease.add_to_totals", refuse)
    monkeypatch.setattr(lease, "_lose_unknown", lambda: ended.append(True))
    lease._renew()
    assert ended == [True]
    assert list(lease.host.hints.claim_noops) == [1]


def test_a_stop_request_reaches_the_run_within_a_second_or_so(durable_fleet: Fleet, lease: Lease):
    run, control = _running(durable_fleet, lease)
    dispatch.request_stop([run], NOON, "stopped by ann")
    wait_for(lambda: control.request, 2)
    assert control.request and control.request.reason == "stopped by ann"


def test_other_runs_are_not_stopped(durable_fleet: Fleet, lease: Lease):
    run, _ = _running(durable_fleet, lease)
    bystander = RunControl()
    lease.host.live[run.pk + 1] = bystander
    dispatch.request_stop([run], NOON, "stopped by ann")
    lease._serve_runs()
    assert bystander.request is None


def test_the_process_id_of_a_run_is_shown_while_it_runs(durable_fleet: Fleet, lease: Lease):
    run, control = _running(durable_fleet, lease)
    control.pid = 4711
    wait_for(lambda: Run.objects.get(pk=run.pk).pid == 4711, 2)


def test_the_process_id_of_a_run_that_ended_meanwhile_is_not_touched(
    durable_fleet: Fleet, lease: Lease
):
    run, control = _running(durable_fleet, lease)
    Run.objects.filter(pk=run.pk).update(state="succeeded", slot=None, pid=1)
    control.pid = 4711
    lease._serve_runs()
    assert Run.objects.get(pk=run.pk).pid == 1


def test_a_draining_worker_records_its_state_and_keeps_its_lease(lease: Lease):
    lease.drain()
    assert lease.host.draining.is_set()
    lease._renew()
    wait_for(lambda: Worker.objects.get().state == "draining", 5, "still not draining")
    assert Worker.objects.get().ended_at is None


def test_a_worker_that_ends_gives_its_lease_back(lease: Lease):
    lease.end()
    worker = Worker.objects.get()
    assert worker.state == "stopped"
    assert worker.ended_at is not None


FENCED = """
import os, sys, django
django.setup()
from agents_app.worker.lease import Lease
from agents_app.models import Worker
lease = Lease("worker", 1)
Worker.objects.update(state="dead", ended_at="2026-03-02T12:00:00Z")
print("declared dead", flush=True)
lease._renew()
print("still here", flush=True)
"""


def test_a_worker_that_was_declared_dead_ends_itself_instead_of_renewing(new_stack):
    stack: PrivateStack = new_stack()
    done = subprocess.run(
        [sys.executable, "-c", FENCED],
        cwd=ROOT,
        env=stack.env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "declared dead\n"), done.stderr
    (worker,) = stack.rows("SELECT state FROM drover_worker")
    assert worker["state"] == "dead"
