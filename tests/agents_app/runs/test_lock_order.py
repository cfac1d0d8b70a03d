"""On PostgreSQL every change that ends work of an agent locks the agent first: no deadlocks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from agents_app.database.transactions import in_transaction
from agents_app.models import Run, Schedule, WorkItem
from agents_app.runs import control, lifecycle
from agents_app.runs.slots import lock_agent
from agents_app.schedules import edit, firings
from agents_app.schedules.edit import Draft
from tests.agents_app.fleet import NOON, Fleet, at
from tests.agents_app.timely import create, reread, tick
from tests.parts.waiting import wait_for


def cancel(schedule: Schedule) -> Any:
    return edit.cancel(schedule, "ann", at(200))


def retry(schedule: Schedule) -> Any:
    WorkItem.objects.filter(state="admitted").update(state="failed")
    return edit.retry(schedule, "ann", at(200))


def resume(schedule: Schedule) -> Any:
    edit.pause(schedule, "ann", at(200))
    return edit.resume(schedule, "ann", at(200))


def drop(schedule: Schedule) -> Any:
    return control.drop_work(WorkItem.objects.get(state="queued"), "ann", at(200))


def lose(schedule: Schedule) -> Any:
    run = Run.objects.select_related("agent").get()
    return in_transaction(lambda: lifecycle.lose_run(run, at(200), "lost"))


def create_another(schedule: Schedule) -> Any:
    return edit.create(schedule.agent, Draft(text="@daily", name="another"), "ann", at(200))


@pytest.mark.parametrize("act", [cancel, retry, resume, drop, lose, create_another])
def test_a_change_waits_for_the_lock_on_the_agent_and_holds_no_other_lock(
    durable_fleet: Fleet, act: Callable[[Schedule], Any]
):
    schedule = create(durable_fleet.agent(), "* * * * *", overlap="queue")
    tick(at(60)), tick(at(120))
    durable_fleet.start(WorkItem.objects.earliest("id"))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock_agent(schedule.agent_id)
            acting = pool.submit(_in_a_thread, act, schedule)
            wait_for(_a_connection_waits_for_a_lock)
            # The rows that a decision writes: it would wait forever if the change held one of them.
            Schedule.objects.update(skipped_count=F("skipped_count") + 1)
            WorkItem.objects.filter(state="queued").update(reason="seen")
            Run.objects.update(status_text="seen")
        assert acting.result(10)


def test_concurrent_cancels_and_decisions_never_deadlock(durable_fleet: Fleet):
    agent = durable_fleet.agent(paused_at=NOON)
    made = [create(agent, "* * * * *", name=f"s{number}") for number in range(30)]
    for schedule in made:
        durable_fleet.firing(schedule, NOON)

    def cancel_all(_: Schedule) -> int:
        return sum(edit.cancel(schedule, "ann", at(1)) for schedule in made)

    def decide_all(_: Schedule) -> int:
        return firings.decide_firings(at(1))

    with ThreadPoolExecutor(2) as pool:
        acts = [pool.submit(_in_a_thread, act, made[0]) for act in (cancel_all, decide_all)]
        assert sum(act.result(30) for act in acts) == 30
    assert {reread(schedule).state for schedule in made} == {"canceled"}


def _in_a_thread(act: Callable[[Schedule], Any], schedule: Schedule) -> Any:
    try:
        return act(schedule)
    finally:
        connection.close()


def _a_connection_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
