"""Every rule about rows is broken once, on purpose, and is found; guards are taken away first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import BaseConstraint, CheckConstraint

from agents_app.maintenance.invariants import INVARIANTS, violations
from agents_app.models import Agent, Firing, Run, RunEvent, Schedule, Scheduler, Tenant, WorkItem
from agents_app.runs import control
from tests.agents_app.fleet import NOON, Fleet, at, live_run

LATER = at(minutes=10)


def broken(now: datetime = LATER) -> set[str]:
    return {violation.name for violation in violations(now)}


@contextmanager
def without(name: str) -> Iterator[None]:
    """The same database without this guard of runs; it comes back when the runs are gone."""
    (guard,) = [guard for guard in Run._meta.constraints if guard.name == name]
    with unchecked() if isinstance(guard, CheckConstraint) and on_sqlite() else removed(guard):
        yield
        WorkItem.objects.all().delete()


@contextmanager
def removed(guard: BaseConstraint) -> Iterator[None]:
    with connection.schema_editor() as editor:
        editor.remove_constraint(Run, guard)
    try:
        yield
    finally:
        WorkItem.objects.all().delete()
        with connection.schema_editor() as editor:
            editor.add_constraint(Run, guard)


@contextmanager
def unchecked() -> Iterator[None]:
    """SQLite cannot drop a check from a table, but it can look away."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        yield
        cursor.execute("PRAGMA ignore_check_constraints = OFF")


def on_sqlite() -> bool:
    return connection.vendor == "sqlite"


def test_a_busy_fleet_breaks_nothing(fleet: Fleet):
    agent = fleet.agent(scale=2, retries=1)
    schedule = fleet.schedule(agent, overlap="queue", next_fire_at=at(hours=1))
    for _ in range(4):
        fleet.enqueue(agent)
    jobs = [fleet.start(item) for item in agent.work_items.filter(state="admitted")]
    fleet.finish(jobs[0], "failed", at(5), error="oops")
    fleet.finish(jobs[1], now=at(6))
    fleet.fire(schedule, at(7))
    control.scale_agent(agent, 1, "ann", at(8))
    assert violations(at(10)) == []


def test_a_lower_scale_lets_what_runs_finish(fleet: Fleet):
    agent = fleet.agent(scale=3)
    for _ in range(3):
        fleet.start(fleet.enqueue(agent, at(minutes=5)), at(minutes=5))
    Agent.objects.update(updated_at=NOON)
    control.scale_agent(agent, 1, "ann", at(minutes=6))
    assert broken() == set()


def test_a_violation_says_what_it_means_and_names_examples(fleet: Fleet):
    firing = fleet.firing(fleet.schedule(fleet.agent(), next_fire_at=at(days=1)))
    (violation,) = violations(LATER)
    assert (violation.name, violation.count) == ("undecided_firing", 1)
    assert violation.meaning.startswith("Firings without an outcome")
    assert violation.examples == (firing.pk,)


# --- one way to break each ------------------------------------------------------------------


def undecided_firing(fleet: Fleet) -> None:
    fleet.firing(fleet.schedule(fleet.agent(), next_fire_at=at(days=1)))


def firing_without_its_work(fleet: Fleet) -> None:
    undecided_firing(fleet)
    Firing.objects.update(outcome="started")


def work_of_a_firing_without_work(fleet: Fleet) -> None:
    fleet.fire(fleet.schedule(fleet.agent(), next_fire_at=at(days=1)))
    Firing.objects.update(outcome="skipped", reason="paused")


def active_schedule_without_a_next_fire_time(fleet: Fleet) -> None:
    fleet.schedule(fleet.agent(), next_fire_at=None)
    fleet.schedule(fleet.agent("other"), next_fire_at=None, state=Schedule.State.PAUSED)


def due_schedule_that_no_beat_claims(fleet: Fleet) -> None:
    fleet.schedule(fleet.agent())
    Scheduler.objects.create(pk=1, state="running", last_check_at=LATER)


def admitted_work_without_an_unfinished_run(fleet: Fleet) -> None:
    fleet.finish(fleet.start(fleet.enqueue(fleet.agent())))
    WorkItem.objects.update(state="admitted")


def unfinished_run_of_settled_work(fleet: Fleet) -> None:
    fleet.enqueue(fleet.agent())
    WorkItem.objects.update(state="done")


def work_queued_despite_a_free_slot(fleet: Fleet) -> None:
    fleet.agent(scale=2)
    paused = fleet.agent("paused", paused_at=NOON)
    fleet.enqueue(paused)
    for agent in Agent.objects.all():
        fleet.enqueue(agent)
    WorkItem.objects.filter(pk=_waiting(fleet, "reporter")).update(available_at=NOON)


def _waiting(fleet: Fleet, name: str) -> int:
    agent = Agent.objects.get(name=name)
    control.pause_agent(agent, "ann", NOON)
    item = fleet.enqueue(agent)
    Agent.objects.filter(pk=agent.pk).update(paused_at=None)
    return item.pk


def running_run_without_a_worker(fleet: Fleet) -> None:
    fleet.start(fleet.enqueue(fleet.agent()), worker=fleet.worker(ended_at=NOON))


def run_whose_times_contradict_its_state(fleet: Fleet) -> None:
    fleet.finish(fleet.start(fleet.enqueue(fleet.agent())))
    Run.objects.update(finished_at=None)


def ended_run_without_its_event(fleet: Fleet) -> None:
    fleet.finish(fleet.start(fleet.enqueue(fleet.agent())))
    RunEvent.objects.filter(name="run.succeeded").delete()


def one_attempt_twice(fleet: Fleet) -> None:
    agent = fleet.agent(scale=2)
    for _ in range(2):
        fleet.finish(fleet.start(fleet.enqueue(agent)))
    Run.objects.update(work_item=WorkItem.objects.order_by("pk")[0])


def run_admitted_above_the_scale(fleet: Fleet) -> None:
    run = live_run(fleet.enqueue(fleet.agent(), at(minutes=5)))
    Agent.objects.update(updated_at=NOON)
    Run.objects.filter(pk=run.pk).update(slot=1)


def run_of_another_tenant(fleet: Fleet) -> None:
    fleet.finish(fleet.start(fleet.enqueue(fleet.agent())))
    Run.objects.update(tenant=Tenant.objects.create(name="other"))


@pytest.mark.parametrize(
    "breaking",
    [
        undecided_firing,
        firing_without_its_work,
        work_of_a_firing_without_work,
        active_schedule_without_a_next_fire_time,
        due_schedule_that_no_beat_claims,
        admitted_work_without_an_unfinished_run,
        unfinished_run_of_settled_work,
        work_queued_despite_a_free_slot,
        running_run_without_a_worker,
        run_whose_times_contradict_its_state,
        ended_run_without_its_event,
        one_attempt_twice,
        run_admitted_above_the_scale,
        run_of_another_tenant,
    ],
    ids=lambda function: function.__name__,
)
def test_a_broken_rule_is_found_and_no_other(fleet: Fleet, breaking: Callable[[Fleet], None]):
    breaking(fleet)
    (violation,) = violations(LATER)
    assert violation.name == breaking.__name__
    assert violation.count == len(violation.examples) == (2 if "twice" in violation.name else 1)


# --- rules that the database guards itself --------------------------------------------------


def _two_running(fleet: Fleet) -> tuple[Run, Run]:
    agent = fleet.agent(scale=2)
    first, second = (live_run(fleet.enqueue(agent)) for _ in range(2))
    return first, second


def test_two_runs_in_one_slot_are_found(durable_fleet: Fleet):
    with without("run_slot_once"):
        _two_running(durable_fleet)
        Run.objects.update(slot=0)
        assert broken() == {"two_runs_in_one_slot"}


def test_two_runs_in_one_project_slot_are_found(durable_fleet: Fleet):
    with without("run_project_slot_once"):
        _two_running(durable_fleet)
        Run.objects.update(project_slot=0)
        assert broken() == {"two_runs_in_one_project_slot"}


def test_two_live_runs_of_one_work_item_are_found(durable_fleet: Fleet):
    with without("run_live_once_per_work_item"):
        first, second = _two_running(durable_fleet)
        Run.objects.filter(pk=second.pk).update(work_item=first.work_item_id, attempt=2)
        WorkItem.objects.filter(pk=second.work_item_id).update(state="done")
        assert broken() == {"two_live_runs_of_one_work_item"}


def test_a_slot_that_is_held_too_long_or_not_at_all_is_found(durable_fleet: Fleet):
    with without("run_holds_a_slot_while_unfinished"):
        first, second = _two_running(durable_fleet)
        Run.objects.filter(pk=first.pk).update(slot=None)
        assert broken() == {"unfinished_run_without_a_slot"}
        Run.objects.filter(pk=first.pk).update(slot=0)
        durable_fleet.finish(durable_fleet.start(second.work_item))
        Run.objects.filter(pk=second.pk).update(slot=1)
        assert broken() == {"finished_run_holding_a_slot"}


def test_every_rule_is_broken_by_some_test():
    files = Path(__file__).parent.glob("test_invariants*.py")
    source = "".join(path.read_text() for path in files)
    assert [query.__name__ for query in INVARIANTS if query.__name__ not in source] == []
