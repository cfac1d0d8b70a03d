"""The minutely snapshot of this machine and the heartbeat of each run."""

from datetime import datetime, timedelta

import psutil

from agents_app.conf import CONF
from agents_app.database import in_transaction
from agents_app.models import Heartbeat, MachineSnapshot, Run, RunOutput, Worker, WorkItem
from agents_app.text import as_text
from agents_app.worker import this_host

MEGABYTE = 1_000_000
IDLE_AFTER = timedelta(seconds=60)
LAST_BYTES = 2_000
_cpu = psutil.cpu_percent(interval=None)


def take_snapshot(now: datetime) -> None:
    heartbeats = [_heartbeat(run, now) for run in _running()]
    snapshot = _machine(now)

    def write() -> None:
        snapshot.save()
        Heartbeat.objects.bulk_create(heartbeats)

    in_transaction(write)


def _machine(now: datetime) -> MachineSnapshot:
    memory = psutil.virtual_memory()
    return MachineSnapshot(
        host=this_host(),
        at=now,
        cpu_percent=psutil.cpu_percent(interval=None),
        memory_used_mb=(memory.total - memory.available) / MEGABYTE,
        memory_total_mb=memory.total / MEGABYTE,
        disk_free_mb=psutil.disk_usage(str(CONF.data)).free / MEGABYTE,
        active_runs=Run.objects.filter(slot__isnull=False).count(),
        queue_depth=WorkItem.objects.filter(state=WorkItem.State.QUEUED).count(),
        active_workers=Worker.objects.filter(ended_at__isnull=True, lease_until__gt=now).count(),
    )


def _running() -> list[Run]:
    running = Run.objects.filter(slot__isnull=False, state=Run.State.RUNNING, worker__isnull=False)
    return list(running.select_related("worker"))


def _heartbeat(run: Run, now: datetime) -> Heartbeat:
    last = RunOutput.objects.filter(run=run).order_by("-seq").first()
    return Heartbeat(
        tenant_id=run.tenant_id,
        worker=run.worker,
        run=run,
        state=_state(run, last, now),
        status_text=run.status_text,
        last_output=as_text(bytes(last.data)[-LAST_BYTES:]) if last else "",
        at=now,
    )


def _state(run: Run, last: RunOutput | None, now: datetime) -> str:
    assert run.worker is not None
    if run.worker.ended_at or run.worker.lease_until < now:
        return Heartbeat.State.DEAD
    if last is None:
        return Heartbeat.State.ALIVE
    return Heartbeat.State.BUSY if now - last.at < IDLE_AFTER else Heartbeat.State.IDLE
