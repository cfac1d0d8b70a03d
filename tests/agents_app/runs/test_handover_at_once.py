"""PostgreSQL's short cut, taken by several at the same moment, or while something else changes."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from agents_app.models import Agent, Run
from agents_app.runs import lifecycle
from agents_app.runs.job import Job
from agents_app.runs.slots import lock_agent
from tests.agents_app.fleet import NOON, Fleet, event_names, run_states, work_states, worker_of
from tests.agents_app.runs.test_handover import LATER, WELL, agents
from tests.parts.waiting import wait_for


def signaled(run_id: int) -> None:
    Run.objects.filter(pk=run_id).update(signaled_at=NOON, rerun_requested=True)


def in_a_thread(pool: ThreadPoolExecutor, job: Job, worker: int) -> "Future[Job | None]":
    def end() -> Job | None:
        try:
            return lifecycle.hand_over_at_once(job, WELL, LATER, worker)
        finally:
            connection.close()

    return pool.submit(end)


def who_wait_for_a_lock() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def ended_together(
    jobs: list[Job], meanwhile: Callable[[], object] = lambda: None
) -> list[Job | None]:
    """All have begun before any can go on, so each has seen the rows as they were before."""
    workers = [worker_of(job) for job in jobs]
    with ThreadPoolExecutor(len(jobs)) as pool:
        with transaction.atomic():
            lock_agent(jobs[0].agent_id)
            ends = [in_a_thread(pool, *each) for each in zip(jobs, workers, strict=True)]
            wait_for(lambda: who_wait_for_a_lock() == len(jobs))
            meanwhile()
        return [end.result(10) for end in ends]


def two_running(fleet: Fleet) -> tuple[Agent, list[Job]]:
    agent = fleet.agent(scale=2)
    items = [fleet.ask(agent) for _ in range(6)]
    return agent, [fleet.start(item, worker=fleet.worker()) for item in items[:2]]


def test_two_that_end_at_the_same_moment_hand_over_different_work(durable_fleet: Fleet):
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
def test_what_changes_while_it_waits_for_the_agent_counts(durable_fleet: Fleet, change):
    agent, jobs = two_running(durable_fleet)
    assert ended_together(jobs, change) == [None, None]
    assert run_states(agent) == ["running"] * 2
    assert work_states(agent) == ["admitted"] * 2 + ["queued"] * 4


def test_work_that_is_dropped_while_it_waits_is_not_handed_over(durable_fleet: Fleet):
    agent, jobs = two_running(durable_fleet)
    oldest = agent.work_items.filter(state="queued").earliest("id")
    first, second = ended_together(jobs, lambda: lifecycle.drop(oldest.pk, LATER, "told so"))
    assert first and second
    assert work_states(agent)[2:5] == ["dropped", "admitted", "admitted"]


def test_a_run_that_is_lost_while_it_waits_is_not_ended_again(durable_fleet: Fleet):
    agent, (job, _) = two_running(durable_fleet)
    run = Run.objects.select_related("agent").get(pk=job.run_id)
    assert ended_together([job], lambda: lifecycle.lose(run, LATER, "lost")) == [None]
    assert run_states(agent) == ["lost", "running"]
    assert work_states(agent) == ["failed", "admitted"] + ["queued"] * 4
    assert event_names(job.run_id)[-1] == "run.lost"


def test_a_signal_that_comes_while_it_waits_is_heard(durable_fleet: Fleet):
    _, (job, _) = two_running(durable_fleet)
    assert ended_together([job], lambda: signaled(job.run_id)) == [None]
    assert Run.objects.get(pk=job.run_id).state == "running"
