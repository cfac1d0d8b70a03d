"""The required behaviours of schedules, runs and claims: one test each; its docstring is the id."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from agents_app.conf import CONF
from agents_app.errors import Refused, TriggerParseError
from agents_app.maintenance.reconcile import reconcile
from agents_app.models import Agent, Firing, Run, Scheduler, Tenant, Trigger
from agents_app.schedules import due, edit, firings
from agents_app.worker import execute
from agents_app.worker.execute import Host
from tests.agents_app.executing import shell
from tests.agents_app.fleet import NOON, Fleet, at, live_run, run_states, work_states
from tests.agents_app.timely import create, last_work, outcomes, reread, run, start, states, tick

DUE = at(hours=1)


def disable(fleet: Fleet) -> None:
    Tenant.objects.filter(pk=fleet.tenant.pk).update(disabled_at=NOON)


# --- one run --------------------------------------------------------------------------------


def test_a_recurring_schedule_stays_active_when_its_run_fails(fleet: Fleet):
    """ar1"""
    agent = fleet.agent()
    schedule = create(agent, "0 * * * *")
    run(fleet, schedule, "failed", DUE, "boom")
    assert run_states(agent) == ["failed"]
    assert states(schedule) == ("active", "")
    assert reread(schedule).next_fire_at == at(hours=2)


def test_a_one_shot_is_completed_after_one_successful_firing(fleet: Fleet):
    """ar2"""
    schedule = create(fleet.agent(), "in 1 hour")
    run(fleet, schedule, "succeeded", DUE)
    assert (reread(schedule).state, reread(schedule).fire_count) == ("completed", 1)


def test_a_one_shot_whose_run_fails_is_failed_and_the_run_has_the_error(fleet: Fleet):
    """ar3"""
    agent = fleet.agent()
    schedule = create(agent, "in 1 hour")
    run(fleet, schedule, "failed", DUE, "boom")
    assert states(schedule) == ("failed", "boom")
    assert agent.runs.get().error == "boom"


@pytest.mark.parametrize("text", ["0 * * * *", "in 1 hour"])
def test_a_schedule_whose_agent_is_missing_when_it_fires_is_paused_with_the_reason(
    fleet: Fleet, text
):
    """ar4"""
    agent = fleet.agent()
    schedule = create(agent, text)
    Agent.objects.update(removed_at=NOON)
    tick(DUE)
    assert states(schedule) == ("paused", "the agent's directory is missing")
    assert outcomes(schedule) == [(DUE, "skipped", "disabled")]
    assert not agent.work_items.exists()


# --- tenants --------------------------------------------------------------------------------


def test_a_recurring_schedule_of_a_disabled_tenant_is_postponed_by_an_hour(fleet: Fleet):
    """ar5"""
    agent = fleet.agent()
    schedule = create(agent, "*/10 * * * *")
    disable(fleet)
    tick(at(minutes=10))
    assert (reread(schedule).state, run_states(agent)) == ("active", [])
    assert reread(schedule).next_fire_at == at(minutes=80)
    assert outcomes(schedule) == [(at(minutes=10), "skipped", "tenant_disabled")]


def test_a_one_shot_of_a_disabled_tenant_is_paused(fleet: Fleet):
    """ar6"""
    agent = fleet.agent()
    schedule = create(agent, "in 1 hour")
    disable(fleet)
    tick(DUE)
    assert states(schedule) == ("paused", "the tenant is disabled")
    assert run_states(agent) == []


# --- pause and resume -----------------------------------------------------------------------


def test_a_recurring_schedule_resumed_after_its_fire_time_waits_for_the_next_one(fleet: Fleet):
    """ar7"""
    schedule = create(fleet.agent(), "0 * * * *")
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(hours=2, minutes=30))
    tick(at(hours=2, minutes=31))
    assert outcomes(schedule) == []
    assert reread(schedule).next_fire_at == at(hours=3)


def test_a_one_shot_resumed_after_its_fire_time_fires_on_the_next_tick(fleet: Fleet):
    """ar8"""
    schedule = create(fleet.agent(), "in 1 hour")
    edit.pause(schedule, "ann", NOON)
    edit.resume(schedule, "ann", at(hours=9))
    tick(at(hours=9))
    assert [outcome for _, outcome, _ in outcomes(schedule)] == ["started"]


def test_a_run_longer_than_its_interval_does_not_delay_other_schedules(fleet: Fleet):
    """ar22"""
    slow, other = fleet.agent("slow"), fleet.agent("other")
    long_one = create(slow, "every 15 minutes")
    minutely = create(other, "* * * * *", overlap="queue")
    tick(at(minutes=15))
    job = start(fleet, long_one, at(minutes=15))
    for minute in range(16, 46):
        tick(at(minutes=minute))
    fleet.finish(job, now=at(minutes=45))
    assert [reason for *_, reason in outcomes(long_one)] == ["", *["already_running"] * 2]
    fired = [at for at, outcome, _ in outcomes(minutely) if outcome in ("started", "queued")]
    assert fired[-30:] == [at(minutes=minute) for minute in range(16, 46)]


# --- claiming -------------------------------------------------------------------------------


def in_parallel(*acts: Callable[[], Any]) -> list[Any]:
    def do(act: Callable[[], Any]) -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(do, acts))


def test_of_several_beats_exactly_one_claims_a_due_schedule(durable_fleet: Fleet):
    """ge1"""
    agent = durable_fleet.agent()
    made = [create(agent, "0 * * * *", name=f"s{number}") for number in range(10)]
    beat = lambda: due.claim_due_schedules(DUE)  # noqa: E731
    assert sum(in_parallel(beat, beat, beat)) == 10
    assert [outcomes(schedule) for schedule in made] == [[(DUE, "", "")]] * 10
    in_parallel(*[lambda: firings.decide_firings(DUE)] * 3)
    assert agent.work_items.count() == 1


def test_a_run_whose_worker_lost_its_lease_is_queued_again_without_a_worker(fleet: Fleet):
    """ge2"""
    agent = fleet.agent(on_lost="retry")
    item = fleet.enqueue(agent)
    fleet.start(item, worker=fleet.worker(lease_until=at(30)))
    Scheduler.objects.create(pk=1, last_reconcile_at=at(110))
    reconcile(at(120), "here")
    again = live_run(item)
    assert (again.state, again.worker, again.started_at) == ("pending", None, None)
    assert run_states(agent) == ["lost", "pending"]
    assert CONF.reconcile_seconds <= 60


def test_a_repeated_key_makes_one_work_item_and_a_repeated_instant_fires_once(fleet: Fleet):
    """ge3"""
    agent = fleet.agent()
    first, second = (
        fleet.enqueue(agent, trigger=Trigger.WEBHOOK, idempotency_key="k") for _ in range(2)
    )
    assert first.pk == second.pk
    schedule = create(agent, "0 * * * *")
    firing = fleet.firing(schedule, DUE)
    with pytest.raises(IntegrityError), transaction.atomic():
        fleet.firing(schedule, DUE)
    tick(DUE)
    assert list(schedule.firings.all()) == [firing]


def test_more_than_three_late_firings_are_spread_over_half_a_minute(fleet: Fleet):
    """ge4"""
    agent = fleet.agent(scale=6)
    for number in range(6):
        create(agent, "0 * * * *", name=f"s{number}")
    now = DUE + timedelta(minutes=5)
    due.claim_due_schedules(now)
    moments = list(Firing.objects.values_list("decide_at", flat=True))
    assert len(set(moments)) == 6
    assert all(now <= moment < now + timedelta(seconds=30) for moment in moments)


def test_at_the_projects_cap_no_run_starts_and_the_log_has_the_reason(fleet: Fleet, caplog):
    """ge5"""
    Tenant.objects.update(scale=5)
    for number in range(5):
        fleet.start(fleet.enqueue(fleet.agent(f"busy-{number}")))
    schedule = create(fleet.agent("idle"), "0 * * * *")
    tick(DUE)
    assert outcomes(schedule) == [(DUE, "skipped", "at_capacity")]
    assert Run.objects.filter(slot__isnull=False).count() == 5
    (line,) = [r.msg for r in caplog.records if r.msg["event"] == "firing.skipped"]
    assert (line["reason"], line["schedule_id"]) == ("at_capacity", schedule.pk)


# --- commands of users ----------------------------------------------------------------------


def test_a_firing_of_a_paused_schedule_does_not_start(fleet: Fleet):
    """ge8"""
    agent = fleet.agent()
    schedule = create(agent, "0 * * * *")
    due.claim_due_schedules(DUE)
    edit.pause(schedule, "ann", DUE)
    firings.decide_firings(DUE)
    assert outcomes(schedule) == [(DUE, "skipped", "paused")]
    assert not agent.work_items.exists()


def test_a_cancel_skips_undecided_firings_and_returns_their_number(fleet: Fleet):
    """ge9"""
    schedule = create(fleet.agent(), "0 * * * *")
    due.claim_due_schedules(DUE)
    assert edit.cancel(schedule, "ann", DUE) == 1
    tick(at(hours=5))
    assert outcomes(schedule) == [(DUE, "skipped", "disabled")]
    assert (reread(schedule).state, reread(schedule).next_fire_at) == ("canceled", None)


def test_a_retry_enqueues_the_last_failed_work_and_activates_the_schedule(fleet: Fleet):
    """ge10"""
    agent = fleet.agent()
    schedule = create(agent, "in 1 hour", prompt="sums")
    run(fleet, schedule, "failed", DUE, "boom")
    item = edit.retry(schedule, "ann", at(hours=2))
    assert (item.prompt, item.available_at) == ("sums", at(hours=2))
    assert states(schedule) == ("active", "")
    assert run_states(agent) == ["failed", "pending"]


def test_the_name_of_an_active_schedule_is_refused(fleet: Fleet):
    """ge11"""
    agent = fleet.agent()
    create(agent, "@daily", name="report")
    with pytest.raises(Refused, match="has a schedule 'report' already"):
        create(agent, "@hourly", name="report")


def test_a_time_in_the_past_is_refused(fleet: Fleet):
    """ge12"""
    with pytest.raises(TriggerParseError, match="is in the past"):
        create(fleet.agent(), "at 2026-03-02T11:59:00Z")


# --- results of runs ------------------------------------------------------------------------


def test_a_schedule_whose_program_cannot_start_has_a_next_fire_time(fleet: Fleet, host: Host):
    """ge13"""
    agent = fleet.agent(command=["/no/such/program"])
    schedule = create(agent, "0 * * * *")
    tick(DUE)
    assert reread(schedule).next_fire_at == at(hours=2)
    execute.execute(live_run(last_work(schedule)).pk, host)
    assert agent.runs.get().error.startswith("spawn_failed")
    tick(at(hours=2))
    assert [outcome for _, outcome, _ in outcomes(schedule)] == ["started", "started"]
    assert states(schedule) == ("active", "")


@pytest.mark.parametrize(("code", "state"), [(0, "succeeded"), (3, "failed")])
def test_the_exit_code_and_the_end_of_a_run_are_recorded(fleet: Fleet, host: Host, code, state):
    """ge14"""
    agent = fleet.agent(command=shell(f"exit {code}"))
    execute.execute(live_run(fleet.enqueue(agent)).pk, host)
    done = agent.runs.get()
    assert (done.state, done.exit_code, done.finished_at) == (state, code, NOON)
    assert work_states(agent) == ["done" if code == 0 else "failed"]


def test_a_zone_is_kept_from_fire_to_fire_and_over_a_clock_change(fleet: Fleet):
    """ge15"""
    schedule = create(fleet.agent(), "0 9 * * *", timezone="America/New_York", overlap="queue")
    for _ in range(8):
        upcoming = reread(schedule).next_fire_at
        assert upcoming is not None
        tick(upcoming)
    fired = [due_at for due_at, *_ in outcomes(schedule)]
    winter = [datetime(2026, 3, day, 14, tzinfo=UTC) for day in (2, 3, 4, 5, 6, 7)]
    summer = [datetime(2026, 3, day, 13, tzinfo=UTC) for day in (8, 9)]
    assert fired == winter + summer
    assert reread(schedule).timezone == "America/New_York"
