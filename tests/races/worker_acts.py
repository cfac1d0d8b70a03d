"""The acts of concurrent workers, and of users and sweeps at the same time."""

import time
from functools import partial
from itertools import cycle
from typing import Any

from django.db import DatabaseError, connection

from agents_app.database.transactions import in_transaction
from agents_app.models import Agent, Run, Tenant, Trigger
from agents_app.runs import dispatch, lifecycle
from agents_app.runs.dispatch import Request
from agents_app.runs.job import Ending, Job
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.races import removed_guards
from tests.races.beat_acts import PAUSE_SECONDS, wait_until
from tests.races.checks import EPOCH
from tests.races.setup_acts import make_worker


def ask(
    start_at: float, agent_id: int, times: int, broken: bool = False, keys: bool = False
) -> None:
    """Enqueue work; with `keys` all racers use the same idempotency keys."""
    if broken:
        removed_guards.admissions_without_guards()
    tenant_id = Tenant.objects.values_list("pk", flat=True).get()
    wait_until(start_at)
    for number in range(times):
        key = f"delivery {number}" if keys else None
        request = Request(tenant_id, agent_id, Trigger.WEBHOOK, idempotency_key=key)
        dispatch.enqueue(request, EPOCH)


def work(start_at: float, seconds: float, hand_over: bool = False) -> dict[str, Any]:
    """Start and finish pending runs for some seconds, as the threads of a worker do."""
    worker_id, until = make_worker(), start_at + seconds
    done, errors = 0, []
    wait_until(start_at)
    while time.time() < until:
        pending = Run.objects.filter(state="pending").order_by("?").values_list("pk", flat=True)
        for run_id in list(pending[:5]):
            try:
                done += _execute_run(run_id, worker_id, hand_over)
            except DatabaseError as error:
                errors.append(repr(error))
                connection.close()
        time.sleep(PAUSE_SECONDS)
    return {"done": done, "errors": errors}


def _execute_run(run_id: int, worker_id: int, hand_over: bool) -> int:
    job, done = in_transaction(lambda: lifecycle.start_run(run_id, worker_id, EPOCH)), 0
    while job is not None:
        ending = partial(lifecycle.finish_run, job, Ending("succeeded"), EPOCH, worker_id)
        following = in_transaction(partial(ending, hand_over=hand_over))
        done += 1
        if following is None:
            dispatch.admit_under_cap(job.tenant_id, EPOCH)
        job = following if hand_over else None
    return done


def start_all(start_at: float, worker_id: int) -> int:
    wait_until(start_at)
    pending = Run.objects.filter(state="pending").order_by("pk").values_list("pk", flat=True)
    started = [
        in_transaction(partial(lifecycle.start_run, run_id, worker_id, EPOCH)) for run_id in pending
    ]
    return sum(job is not None for job in started)


def finish_all(start_at: float, worker_id: int) -> None:
    runs = Run.objects.filter(state="running").order_by("pk").select_related("work_item")
    jobs = [_job_of(run) for run in runs]
    wait_until(start_at)
    for job in jobs:
        ending = partial(lifecycle.finish_run, job, Ending("succeeded"), EPOCH, worker_id)
        in_transaction(partial(ending, hand_over=False))


def _job_of(run: Run) -> Job:
    ids = (run.pk, run.tenant_id, run.agent_id, run.work_item_id, run.schedule_id)
    return Job(*ids, run.trigger, run.attempt, run.rerun, 1, 900.0, "", "", "", run.trace_id)


def lose_all(start_at: float) -> None:
    """Declare all running runs lost, as a sweep does after the death of their worker."""
    runs = list(Run.objects.filter(state="running").order_by("pk").select_related("agent"))
    wait_until(start_at)
    for run in runs:
        in_transaction(partial(lifecycle.lose_run, run, EPOCH, "lost"))


def stop_all(start_at: float, seconds: float = 0) -> list[str]:
    """Stop all unfinished runs repeatedly; returns the errors."""
    until, errors = start_at + seconds, []
    wait_until(start_at)
    while True:
        for run in Run.objects.filter(slot__isnull=False).order_by("pk"):
            try:
                dispatch.request_stop([run], EPOCH, "stopped")
            except DatabaseError as error:
                errors.append(repr(error))
                connection.close()
        if time.time() > until:
            return errors
        time.sleep(PAUSE_SECONDS)


def most_unfinished(start_at: float, seconds: float) -> int:
    """The maximum of unfinished runs, counted continuously."""
    most, until = 0, start_at + seconds
    wait_until(start_at)
    while time.time() < until:
        most = max(most, Run.objects.filter(slot__isnull=False).count())
    return most


def rescale(start_at: float, seconds: float, agent_id: int, scales: list[int]) -> None:
    until, agent = start_at + seconds, Agent.objects.filter(pk=agent_id)
    wait_until(start_at)
    for scale in cycle(scales):
        in_transaction(partial(agent.update, scale=scale))
        dispatch.admit_waiting(agent_id, EPOCH)
        time.sleep(0.02)
        if time.time() > until:
            return


def deliver(start_at: float, runs: list[int], times: int, broken: bool = False) -> int:
    """Deliver each hint repeatedly; returns the number of runs that were executed here."""
    host = Host(make_worker(), lambda: EPOCH)
    if broken:
        removed_guards.moves_without_a_condition()
    wait_until(start_at)
    return sum(_deliver_hint(run_id, host, broken) for run_id in runs for _ in range(times))


def _deliver_hint(run_id: int, host: Host, broken: bool) -> int:
    try:
        return execute.execute(run_id, host)
    except DatabaseError:
        if not broken:
            raise
        return 0  # refused by other guards than the removed one
