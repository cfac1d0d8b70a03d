"""What racing processes do. As a program it forks one for each order that it reads.

Hints are not what is raced for: they go nowhere here, as if Redis were away."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    django.setup()

from django.db import DatabaseError, connection

from agents_app import dispatch, due, execute, lifecycle, relay
from agents_app.commit import in_transaction
from agents_app.dispatch import Request
from agents_app.execute import Host
from agents_app.job import Ending, Job
from agents_app.models import Agent, Run, Schedule, Scheduler, Tenant, Trigger, Worker, WorkItem
from tests.races import breaking, checks

EPOCH = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PAUSE_SECONDS = 0.005


def wait_until(start_at: float) -> None:
    time.sleep(max(0.0, start_at - time.time()))


class FastClock:
    """The same for all racers: some seconds pass in each second."""

    def __init__(self, start_at: float, speed: float) -> None:
        self.start_at, self.speed = start_at, speed

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=(time.time() - self.start_at) * self.speed)


# --- the field ------------------------------------------------------------------------------


def make_agents(count: int = 1, cap: int | None = None, **columns: Any) -> list[int]:
    tenant = Tenant.objects.create(name="default", scale=cap)
    Scheduler.objects.create(pk=1, state="running")
    values: dict[str, Any] = {"command": ["true"], "revision": 1, "work_queue_size": 10_000}
    values |= columns
    agents = [Agent(tenant=tenant, name=f"agent-{n}", **values) for n in range(count)]
    return [agent.pk for agent in Agent.objects.bulk_create(agents)]


def make_schedules(agents: list[int], count: int, expressions: list[str], **columns: Any) -> None:
    """`count` for each agent, all due for the first time at the epoch."""
    Schedule.objects.bulk_create(
        Schedule(
            tenant=Tenant.objects.get(),
            agent_id=agent_id,
            name=f"{number}",
            expression=expressions[number % len(expressions)],
            next_fire_at=EPOCH,
            catch_up="all",
            catch_up_window_seconds=86_400,
            **columns,
        )
        for agent_id in agents
        for number in range(count)
    )


def make_worker() -> int:
    now = datetime.now(UTC)
    worker = Worker.objects.create(
        name="racer",
        host="here",
        boot_id="this",
        pid=os.getpid(),
        pid_started=0,
        concurrency=1,
        started_at=now,
        lease_until=now + timedelta(hours=1),
    )
    return worker.pk


def find(check: str, **arguments: Any) -> list[str]:
    """What a check finds wrong."""
    found: list[str] = getattr(checks, check)(**arguments)
    return found


def count(model: str, **filters: Any) -> int:
    tables: dict[str, Any] = {"run": Run, "work": WorkItem, "schedule": Schedule}
    return int(tables[model].objects.filter(**filters).count())


# --- beats ----------------------------------------------------------------------------------


def beat(start_at: float, seconds: float, speed: float, broken: bool = False) -> list[str]:
    """Ticks as beat does, for some seconds; the errors that came up."""
    if broken:
        breaking.claims_without_guards()
    clock, until, errors = FastClock(start_at, speed), start_at + seconds, []
    wait_until(start_at)
    while time.time() < until:
        try:
            due.claim_due_schedules(clock.now())
            dispatch.decide_firings(clock.now())
        except DatabaseError as error:
            errors.append(repr(error))
            connection.close()
        time.sleep(PAUSE_SECONDS)
    return errors


def tick(minutes: float) -> None:
    now = EPOCH + timedelta(minutes=minutes)
    due.claim_due_schedules(now)
    dispatch.decide_firings(now)


def tick_and_die(at_sql: str, after: bool) -> None:
    """SIGKILL at the first statement with this in it: before it, or when it is done."""
    breaking.die_at(at_sql, after=after)
    tick(0)


def claim_and_die() -> None:
    due.claim_due_schedules(EPOCH)
    os.kill(os.getpid(), signal.SIGKILL)


def pause_schedules(start_at: float) -> None:
    wait_until(start_at)
    for key in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        in_transaction(partial(lifecycle.pause_schedule, key, "meanwhile"))


def edit_schedules(start_at: float, next_fire_at: str) -> None:
    """As a person does in a form: new text, new prompt, new time."""
    wait_until(start_at)
    values = {"expression": "30 * * * *", "prompt": "new", "next_fire_at": next_fire_at}
    for key in Schedule.objects.order_by("pk").values_list("pk", flat=True):
        in_transaction(partial(Schedule.objects.filter(pk=key).update, **values))


def tick_at(start_at: float, minutes: float = 0) -> None:
    wait_until(start_at)
    tick(minutes)


# --- work -----------------------------------------------------------------------------------


def ask(
    start_at: float, agent_id: int, times: int, broken: bool = False, keys: bool = False
) -> None:
    """The same requests as all others, if they have keys."""
    if broken:
        breaking.admissions_without_guards()
    tenant_id = Tenant.objects.values_list("pk", flat=True).get()
    wait_until(start_at)
    for number in range(times):
        key = f"delivery {number}" if keys else None
        request = Request(tenant_id, agent_id, Trigger.WEBHOOK, idempotency_key=key)
        dispatch.enqueue(request, EPOCH)


def work(start_at: float, seconds: float, hand_over: bool = False) -> dict[str, Any]:
    """Starts whatever is pending and finishes it at once, as many threads of workers would."""
    worker_id, until = make_worker(), start_at + seconds
    done, errors = 0, []
    wait_until(start_at)
    while time.time() < until:
        pending = Run.objects.filter(state="pending").order_by("?").values_list("pk", flat=True)
        for run_id in list(pending[:5]):
            try:
                done += _one_run(run_id, worker_id, hand_over)
            except DatabaseError as error:
                errors.append(repr(error))
                connection.close()
        time.sleep(PAUSE_SECONDS)
    return {"done": done, "errors": errors}


def _one_run(run_id: int, worker_id: int, hand_over: bool) -> int:
    job, done = in_transaction(lambda: lifecycle.start(run_id, worker_id, EPOCH)), 0
    while job is not None:
        ending = partial(lifecycle.finish, job, Ending("succeeded"), EPOCH, worker_id)
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
        in_transaction(partial(lifecycle.start, run_id, worker_id, EPOCH)) for run_id in pending
    ]
    return sum(job is not None for job in started)


def finish_all(start_at: float, worker_id: int) -> None:
    runs = Run.objects.filter(state="running").order_by("pk").select_related("work_item")
    jobs = [_job_of(run) for run in runs]
    wait_until(start_at)
    for job in jobs:
        ending = partial(lifecycle.finish, job, Ending("succeeded"), EPOCH, worker_id)
        in_transaction(partial(ending, hand_over=False))


def _job_of(run: Run) -> Job:
    ids = (run.pk, run.tenant_id, run.agent_id, run.work_item_id, run.schedule_id)
    return Job(*ids, run.trigger, run.attempt, run.rerun, 1, 900.0, "", "", "", run.trace_id)


def lose_all(start_at: float) -> None:
    """As a sweep that takes the worker for dead."""
    runs = list(Run.objects.filter(state="running").order_by("pk").select_related("agent"))
    wait_until(start_at)
    for run in runs:
        in_transaction(partial(lifecycle.lose, run, EPOCH, "lost"))


def stop_all(start_at: float, seconds: float = 0) -> list[str]:
    """As people who stop whatever they see; the errors that came up."""
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
    """How many runs were unfinished at once, as far as somebody who looks all the time sees."""
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
    """Each hint again and again; how many runs were executed here."""
    host = Host(make_worker(), lambda: EPOCH)
    if broken:
        breaking.moves_without_a_condition()
    wait_until(start_at)
    return sum(_delivered(run_id, host, broken) for run_id in runs for _ in range(times))


def _delivered(run_id: int, host: Host, broken: bool) -> int:
    try:
        return execute.execute(run_id, host)
    except DatabaseError:
        if not broken:
            raise
        return 0  # other guards than the one that was taken away


# --- the program ----------------------------------------------------------------------------

ACTS: dict[str, Callable[..., Any]] = {
    act.__name__: act
    for act in (
        make_agents, make_schedules, make_worker, find, count, beat, tick, tick_at, tick_and_die,
        claim_and_die, pause_schedules, edit_schedules, ask, work, most_unfinished, rescale,
        deliver, start_all, finish_all, lose_all, stop_all, breaking.drop_index,
    )
}  # fmt: skip


def _perform(order: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": ACTS[order["act"]](**order["arguments"])}
    except BaseException:
        return {"error": traceback.format_exc()}


def _race(order: dict[str, Any]) -> None:
    answer = Path(order["answer"])
    draft = answer.with_suffix(".draft")
    draft.write_text(json.dumps(_perform(order)))
    draft.replace(answer)


def main() -> None:
    relay.hint = lambda *_: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need no burial
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _race(json.loads(line))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
