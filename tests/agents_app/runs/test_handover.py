"""The hand-over in one statement on PostgreSQL: the result of lifecycle.py, or no change."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from agents_app.models import Agent, Run, RunEvent, Schedule, Scheduler, Tenant, WorkItem
from agents_app.runs import control, handover, lifecycle
from agents_app.runs.job import Ending, Job
from agents_app.runs.slots import lock_agent
from tests.agents_app.fleet import NOON, Fleet, at, event_names, run_states, work_states, worker_of
from tests.parts.waiting import wait_for

WELL = Ending("succeeded", exit_code=0, pid=4711, output_bytes=12, output_cut_bytes=3)
LATER = at(30)


def busy(fleet: Fleet, waiting: int = 2, **columns: Any) -> tuple[Agent, Job]:
    """An agent with a running run and queued work."""
    agent = fleet.agent(**columns)
    job = fleet.start(fleet.enqueue(agent, prompt="first", requested_by="ann"))
    for number in range(waiting):
        fleet.enqueue(agent, prompt=f"next {number}", context="c", requested_by=f"person {number}")
    return agent, job


def hand_over_job(job: Job, ending: Ending = WELL) -> Job | None:
    return lifecycle.hand_over_in_one_statement(job, ending, LATER, worker_of(job))


def rows(new_run: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """All rows that the end of a run may change, without the id of the new run."""

    def known(row: dict[str, Any], *columns: str) -> dict[str, Any]:
        return {n: "new" if n in columns and v == new_run else v for n, v in row.items()}

    events = RunEvent.objects.order_by("id").values(
        "tenant", "agent", "run", "name", "at", "detail"
    )
    return {
        "runs": [known(row, "id") for row in Run.objects.order_by("id").values()],
        "work": list(WorkItem.objects.order_by("id").values()),
        "events": [known(row, "run") for row in events],
        "schedules": list(Schedule.objects.order_by("id").values()),
    }


# --- the same result ------------------------------------------------------------------------


def no_special_case(fleet: Fleet) -> Job:
    return busy(fleet)[1]


def one_queued_work_item(fleet: Fleet) -> Job:
    return busy(fleet, waiting=1)[1]


def several_slots(fleet: Fleet) -> Job:
    agent = fleet.agent(scale=3)
    jobs = [fleet.start(item) for item in [fleet.enqueue(agent) for _ in range(5)][:3]]
    return jobs[1]


def next_work_has_a_schedule(fleet: Fleet) -> Job:
    agent, job = busy(fleet, waiting=0)
    assert fleet.fire(fleet.schedule(agent, overlap="queue", prompt="tidy")).outcome == "queued"
    return job


def next_work_is_a_retry(fleet: Fleet) -> Job:
    agent, job = busy(fleet, waiting=0, retries=2)
    fleet.finish(job, "failed", NOON)
    return fleet.start(fleet.enqueue(agent, at(1)), at(1))


def definition_changed(fleet: Fleet) -> Job:
    job = no_special_case(fleet)
    Agent.objects.update(revision=7, timeout_seconds=12.5)
    return job


def next_work_was_called(fleet: Fleet) -> Job:
    agent, job = busy(fleet, waiting=0)
    fleet.enqueue(agent, parent_run_id=job.run_id, depth=2, trace_id="c" * 32)
    return job


def started_under_a_cap(fleet: Fleet) -> Job:
    Tenant.objects.update(scale=4)
    job = no_special_case(fleet)
    assert Run.objects.get(pk=job.run_id).project_slot == 0
    Tenant.objects.update(scale=None)
    return job


def stop_requested(fleet: Fleet) -> Job:
    job = no_special_case(fleet)
    control.stop_run(Run.objects.get(pk=job.run_id), "bob", at(1))
    return job


@contextmanager
def rolled_back() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    "situation",
    [
        *(
            no_special_case,
            one_queued_work_item,
            several_slots,
            next_work_has_a_schedule,
            next_work_is_a_retry,
        ),
        *(definition_changed, stop_requested, next_work_was_called, started_under_a_cap),
    ],
)
def test_one_statement_leaves_the_same_rows_events_and_job_as_lifecycle(
    fleet: Fleet, monkeypatch, situation: Callable[[Fleet], Job]
):
    job = situation(fleet)
    for module in (handover, lifecycle):
        monkeypatch.setattr(module, "new_secret", lambda: "the same for both")
    with rolled_back():
        quick = hand_over_job(job)
        assert quick is not None
        after_short_cut = rows(quick.run_id)
    monkeypatch.setattr(handover, "hand_over", lambda *_: None)
    with rolled_back():
        slow = lifecycle.finish_run(job, WELL, LATER, worker_of(job), hand_over=True)
        assert slow is not None
        assert rows(slow.run_id) == after_short_cut
    assert replace(quick, run_id=0) == replace(slow, run_id=0)


def test_the_oldest_due_work_item_is_next(fleet: Fleet):
    agent, job = busy(fleet, waiting=3)
    first, second, _ = agent.work_items.filter(state="queued").order_by("id")
    WorkItem.objects.filter(pk=first.pk).update(available_at=at(31))
    following = hand_over_job(job)
    assert following is not None
    assert following.work_item_id == second.pk
    assert event_names(following.run_id) == ["run.admitted", "run.started"]
    assert event_names(job.run_id)[-1] == "run.succeeded"


def test_a_chain_of_hand_overs_finishes_all_work_in_one_slot(fleet: Fleet):
    agent, job = busy(fleet, waiting=4)
    worker = worker_of(job)
    following: Job | None = job
    while following := lifecycle.finish_run(following, WELL, LATER, worker, hand_over=True):
        assert Run.objects.get(slot__isnull=False).pk == following.run_id
    assert work_states(agent) == ["done"] * 5
    assert run_states(agent) == ["succeeded"] * 5


# --- no change ------------------------------------------------------------------------------


def agents(**columns: Any) -> Callable[[], object]:
    return lambda: Agent.objects.update(**columns)


def tenants(**columns: Any) -> Callable[[], object]:
    return lambda: Tenant.objects.update(**columns)


@pytest.mark.parametrize(
    "change",
    [
        agents(paused_at=NOON),
        agents(removed_at=NOON),
        agents(scale=0),
        tenants(paused_at=NOON),
        tenants(disabled_at=NOON),
        tenants(scale=5),
        lambda: Scheduler.objects.create(pk=1, state="draining"),
        lambda: WorkItem.objects.filter(state="queued").delete(),
        lambda: WorkItem.objects.filter(state="queued").update(available_at=at(31)),
        lambda: WorkItem.objects.filter(state="queued").update(state="dropped"),
        lambda: Run.objects.update(worker=None),
        lambda: Run.objects.update(state="succeeded", slot=None, finished_at=NOON),
    ],
    ids=[
        *("agent paused", "agent removed", "no slots", "tenant paused", "tenant disabled"),
        *("capped", "draining", "nothing waits", "not yet", "dropped", "not owned", "ended"),
    ],
)
def test_the_statement_changes_no_row_in_cases_that_lifecycle_must_handle(fleet: Fleet, change):
    _, job = busy(fleet)
    worker = worker_of(job)
    change()
    before = rows()
    assert lifecycle.hand_over_in_one_statement(job, WELL, LATER, worker) is None
    assert rows() == before


@pytest.mark.parametrize(("scale", "slot"), [(1, 0), (1, 1), (2, 2)])
def test_the_statement_changes_no_row_while_more_runs_than_the_scale_are_unfinished(
    fleet: Fleet, scale, slot
):
    agent = fleet.agent(scale=3)
    items = [fleet.enqueue(agent) for _ in range(5)]
    jobs = [fleet.start(item) for item in items[:3]]
    Agent.objects.update(scale=scale)
    before = rows()
    assert hand_over_job(jobs[slot]) is None
    assert rows() == before


@pytest.mark.parametrize(
    "ending", [Ending("failed", "exit code 1"), Ending("succeeded", wants_rerun=True)]
)
def test_the_statement_is_only_used_for_successful_runs_without_a_rerun(fleet: Fleet, ending):
    _, job = busy(fleet)
    before = rows()
    assert hand_over_job(job, ending) is None
    assert rows() == before


def test_the_run_of_a_schedule_is_finished_by_lifecycle_which_updates_the_schedule(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    fleet.enqueue(agent)
    assert hand_over_job(job) is None
    assert lifecycle.finish_run(job, WELL, LATER, worker_of(job), hand_over=True) is not None
    schedule.refresh_from_db()
    assert schedule.last_completed_at == LATER


# --- concurrent changes ----------------------------------------------------------------------


def signaled(run_id: int) -> None:
    Run.objects.filter(pk=run_id).update(signaled_at=NOON, rerun_requested=True)


def in_a_thread(pool: ThreadPoolExecutor, job: Job, worker: int) -> "Future[Job | None]":
    def end() -> Job | None:
        try:
            return lifecycle.hand_over_in_one_statement(job, WELL, LATER, worker)
        finally:
            connection.close()

    return pool.submit(end)


def count_lock_waits() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def ended_together(
    jobs: list[Job], meanwhile: Callable[[], object] = lambda: None
) -> list[Job | None]:
    """All statements start before the lock is released, so each has read the old rows."""
    workers = [worker_of(job) for job in jobs]
    with ThreadPoolExecutor(len(jobs)) as pool:
        with transaction.atomic():
            lock_agent(jobs[0].agent_id)
            ends = [in_a_thread(pool, *each) for each in zip(jobs, workers, strict=True)]
            wait_for(lambda: count_lock_waits() == len(jobs))
            meanwhile()
        return [end.result(10) for end in ends]


def two_running(fleet: Fleet) -> tuple[Agent, list[Job]]:
    agent = fleet.agent(scale=2)
    items = [fleet.enqueue(agent) for _ in range(6)]
    return agent, [fleet.start(item, worker=fleet.worker()) for item in items[:2]]


def test_two_runs_that_end_concurrently_start_different_work_items(durable_fleet: Fleet):
    agent, jobs = two_running(durable_fleet)
    first, second = ended_together(jobs)
    assert first and second
    oldest = list(agent.work_items.order_by("id").values_list("pk", flat=True))[2:4]
    assert sorted([first.work_item_id, second.work_item_id]) == oldest
    assert work_states(agent) == ["done"] * 2 + ["admitted"] * 2 + ["queued"] * 2
    assert sorted(agent.runs.filter(slot__isnull=False).values_list("slot", flat=True)) == [0, 1]
    for job, following in zip(jobs, (first, second), strict=True):
        assert worker_of(following) == worker_of(job)


@pytest.mark.parametrize(
    "change", [agents(scale=1), agents(paused_at=NOON), agents(removed_at=NOON)]
)
def test_changes_committed_while_the_statement_waits_for_the_lock_are_seen(
    durable_fleet: Fleet, change
):
    agent, jobs = two_running(durable_fleet)
    assert ended_together(jobs, change) == [None, None]
    assert run_states(agent) == ["running"] * 2
    assert work_states(agent) == ["admitted"] * 2 + ["queued"] * 4


def test_work_dropped_while_the_statement_waits_for_the_lock_is_not_started(durable_fleet: Fleet):
    agent, jobs = two_running(durable_fleet)
    oldest = agent.work_items.filter(state="queued").earliest("id")
    first, second = ended_together(jobs, lambda: lifecycle.drop_work(oldest.pk, LATER, "requested"))
    assert first and second
    assert work_states(agent)[2:5] == ["dropped", "admitted", "admitted"]


def test_a_run_lost_while_the_statement_waits_for_the_lock_is_not_ended_again(durable_fleet: Fleet):
    agent, (job, _) = two_running(durable_fleet)
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    assert ended_together([job], lambda: lifecycle.lose_run(run, LATER, "lost")) == [None]
    assert run_states(agent) == ["lost", "running"]
    assert work_states(agent) == ["failed", "admitted"] + ["queued"] * 4
    assert event_names(job.run_id)[-1] == "run.lost"


def test_a_signal_that_arrives_while_the_statement_waits_for_the_lock_is_applied(
    durable_fleet: Fleet,
):
    _, (job, _) = two_running(durable_fleet)
    assert ended_together([job], lambda: signaled(job.run_id)) == [None]
    assert Run.objects.get(pk=job.run_id).state == "running"
