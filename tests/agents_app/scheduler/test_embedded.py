"""A scheduler in this process: it fires, calls `on_trigger` and stops; states of schedules."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from agents_app.conf import CONF
from agents_app.events import relay
from agents_app.installation import hold_lock
from agents_app.launch import definition
from agents_app.models import Agent, Firing, Run, Schedule, Worker
from agents_app.models import Scheduler as SchedulerRow
from agents_app.runs import control
from agents_app.scheduler import (
    RunScheduleOptions,
    Scheduler,
    SchedulerError,
    SchedulerShutdownError,
    ScheduleStateOptions,
    ScheduleTriggerError,
    TriggerInfo,
    build_schedule_prompt,
    check_schedule,
    get_agent_schedule_states,
    get_schedule_state,
    run_schedule,
    update_schedule_state,
)
from tests.parts.redis_part import RedisServer
from tests.parts.waiting import wait_for

NewScheduler = Callable[..., Scheduler]
# Due at once, and then not again while a test runs.
ONCE_A_DAY = {"interval": "1d", "prompt": "Report."}
FIRES_LATER = {"expression": "0 0 1 1 *"}


def agent(name: str = "reporter", **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedules": {"daily": ONCE_A_DAY}, **fields}


@pytest.fixture
def new_scheduler(transactional_db: None) -> Iterator[NewScheduler]:
    """Schedulers that are stopped after the test."""
    definition.definition_of.cache_clear()
    made: list[Scheduler] = []

    def make(on_trigger: Callable[[TriggerInfo], object] = lambda _: None) -> Scheduler:
        made.append(Scheduler(check_interval=0.02, on_trigger=on_trigger))
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.stop(timeout=20)


class Gate:
    """A callback that waits until the test opens it."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.infos: list[TriggerInfo] = []

    def __call__(self, info: TriggerInfo) -> None:
        self.infos.append(info)
        self.open.wait(60)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


def ended_run() -> Run:
    return wait_for(lambda: Run.objects.filter(finished_at__isnull=False).first())


# --- life -----------------------------------------------------------------------------------


def test_a_scheduler_starts_fires_and_stops_without_redis(new_scheduler: NewScheduler):
    infos: list[TriggerInfo] = []
    scheduler = new_scheduler(infos.append)
    assert (scheduler.is_running(), scheduler.get_status()) == (False, "stopped")
    scheduler.start([agent(instructions="Be short.", scale=2)])
    assert (scheduler.is_running(), scheduler.get_status()) == (True, "running")
    run = ended_run()
    (info,) = infos
    firing = Firing.objects.get()
    assert (run.state, run.trigger, firing.outcome) == ("succeeded", "schedule", "started")
    assert (info.agent, info.schedule, info.prompt) == ("reporter", "daily", "Report.")
    assert (info.run_id, info.work_item_id, info.attempt) == (run.pk, run.work_item_id, 1)
    assert (info.metadata.firing_id, info.metadata.due_at) == (firing.pk, firing.due_at)
    assert info.metadata.trace_id == run.trace_id
    scheduler.stop()
    state = scheduler.get_state()
    assert (state.status, state.trigger_count) == ("stopped", 1)
    assert state.check_count > 0
    assert state.started_at and state.last_check_at and state.started_at <= state.last_check_at
    assert SchedulerRow.objects.get().state == "stopped"
    assert Worker.objects.get().state == "stopped"


def test_a_stopped_scheduler_fires_nothing_and_can_start_again(new_scheduler: NewScheduler):
    infos: list[TriggerInfo] = []
    scheduler = new_scheduler(infos.append)
    scheduler.start([agent()])
    ended_run()
    scheduler.stop()
    scheduler.stop()
    Schedule.objects.update(next_fire_at=datetime.now(UTC))
    checks = scheduler.get_state().check_count
    scheduler.start([agent()])
    wait_for(lambda: len(infos) == 2)
    assert scheduler.get_state().check_count < checks + 1000
    scheduler.stop()
    assert Run.objects.filter(state="succeeded").count() == 2


def test_a_callback_that_raises_fails_its_run_with_the_error(new_scheduler: NewScheduler):
    def refuse(info: TriggerInfo) -> None:
        raise ValueError(f"no report for {info.agent}\0")

    new_scheduler(refuse).start([agent()])
    run = ended_run()
    assert (run.state, run.error) == ("failed", "on_trigger: ValueError: no report for reporter")
    wait_for(lambda: get_schedule_state(None, "reporter", "daily").last_error == run.error)


def test_an_asynchronous_callback_is_awaited(new_scheduler: NewScheduler):
    awaited: list[str] = []

    async def remember(info: TriggerInfo) -> None:
        awaited.append(info.agent)

    new_scheduler(remember).start([agent()])
    assert (ended_run().state, awaited) == ("succeeded", ["reporter"])


def test_a_stop_that_takes_too_long_raises_with_the_number_of_jobs(
    new_scheduler: NewScheduler, gate: Gate
):
    scheduler = new_scheduler(gate)
    scheduler.start([agent("a"), agent("b")])
    wait_for(lambda: len(gate.infos) == 2)
    wait_for(lambda: scheduler.get_total_running_job_count() == 2)
    assert scheduler.get_running_job_counts() == {"a": 1, "b": 1}
    assert (scheduler.get_running_job_count("a"), scheduler.get_running_job_count("x")) == (1, 0)
    with pytest.raises(SchedulerShutdownError, match=r"after 0.1 s 2 job\(s\) still run") as raised:
        scheduler.stop(timeout=0.1)
    assert (raised.value.timed_out, raised.value.running_job_count) == (True, 2)
    assert scheduler.get_status() == "stopped"
    gate.open.set()
    wait_for(lambda: Run.objects.filter(state="succeeded").count() == 2)
    wait_for(lambda: Worker.objects.get().state == "stopped")


def test_a_stop_that_does_not_wait_lets_jobs_go_on(new_scheduler: NewScheduler, gate: Gate):
    scheduler = new_scheduler(gate)
    scheduler.start([agent()])
    wait_for(lambda: gate.infos)
    scheduler.stop(wait_for_jobs=False)
    assert Run.objects.get().state == "running"
    gate.open.set()
    assert ended_run().state == "succeeded"


def test_the_hints_of_the_process_go_to_redis_again_after_a_stop(new_scheduler: NewScheduler):
    scheduler = new_scheduler()
    scheduler.start([agent()])
    assert relay._replacement is not None
    scheduler.stop()
    assert relay._replacement is None


def test_a_process_has_one_running_scheduler(new_scheduler: NewScheduler):
    first, second = new_scheduler(), new_scheduler()
    first.start([agent()])
    with pytest.raises(SchedulerError, match="the scheduler is running: stop it before"):
        first.start([agent()])
    with pytest.raises(SchedulerError, match="another Scheduler of this process is running"):
        second.start([agent()])
    first.stop()
    second.start([agent()])


def test_a_state_that_a_running_drover_uses_is_refused(new_scheduler: NewScheduler):
    CONF.data.mkdir(parents=True, exist_ok=True)
    with hold_lock(CONF.data), pytest.raises(SchedulerError, match=r"`manage\.py up` runs on"):
        new_scheduler().start([agent()])


def test_an_invalid_agent_keeps_the_scheduler_from_starting(new_scheduler: NewScheduler):
    scheduler = new_scheduler()
    with pytest.raises(SchedulerError, match=r"agents\[0\] \(reporter\): scale"):
        scheduler.start([agent(scale="many")])
    assert (scheduler.get_status(), Agent.objects.count()) == ("stopped", 0)
    scheduler.start([agent()])


def test_agents_are_replaced_while_the_scheduler_runs(new_scheduler: NewScheduler):
    infos: list[TriggerInfo] = []
    scheduler = new_scheduler(infos.append)
    with pytest.raises(SchedulerError, match=r"not running: call start\(agents\) first"):
        scheduler.set_agents([agent()])
    scheduler.start([agent("old")])
    wait_for(lambda: infos)
    with pytest.raises(SchedulerError, match=r"agents\[1\] \(bad\)"):
        scheduler.set_agents([agent("new"), agent("bad", scale=-1)])
    assert [info.agent for info in scheduler.get_schedules()] == ["old"]
    scheduler.set_agents([agent("new")])
    wait_for(lambda: len(infos) == 2)
    assert [info.agent for info in infos] == ["old", "new"]
    (shown,) = scheduler.get_schedules()
    assert (shown.agent, shown.schedule, shown.expression) == ("new", "daily", "1d")
    with pytest.raises(SchedulerError, match="there is no agent 'old': there are new"):
        get_schedule_state(None, "old", "daily")


def test_work_that_waits_since_before_the_start_is_executed(
    new_scheduler: NewScheduler, broker: RedisServer
):
    """Its hint went to Redis, where this scheduler does not look."""
    infos: list[TriggerInfo] = []
    scheduler = new_scheduler(infos.append)
    scheduler.start([agent(schedules={})])
    scheduler.stop()
    SchedulerRow.objects.update(state="running")
    control.run_agent(Agent.objects.get(), "a test", datetime.now(UTC), prompt="Now.")
    assert Run.objects.get().state == "pending"
    scheduler.start([agent(schedules={})])
    assert ended_run().state == "succeeded"
    assert [(info.schedule, info.prompt, info.metadata.trigger) for info in infos] == [
        ("", "Now.", "manual")
    ]


# --- schedules ------------------------------------------------------------------------------


def test_the_state_of_a_schedule_follows_its_runs(new_scheduler: NewScheduler, gate: Gate):
    new_scheduler(gate).start([agent()])
    wait_for(lambda: gate.infos)
    assert get_schedule_state(None, "reporter", "daily").status == "running"
    gate.open.set()
    wait_for(lambda: get_schedule_state(None, "reporter", "daily").status == "idle")
    state = get_schedule_state(None, "reporter", "daily")
    assert state.last_run_at and state.next_run_at and state.last_error is None
    assert state.next_run_at - state.last_run_at == timedelta(days=1)


def test_schedules_are_disabled_and_enabled_by_an_update(
    new_scheduler: NewScheduler, caplog: pytest.LogCaptureFixture
):
    new_scheduler().start([agent(schedules={"yearly": FIRES_LATER, "hook": {"type": "webhook"}})])
    states = get_agent_schedule_states(None, "reporter")
    assert {name: state.status for name, state in states.items()} == {
        "hook": "disabled",
        "yearly": "idle",
    }
    names = (None, "reporter", "yearly")
    options = ScheduleStateOptions(logger=logging.getLogger("of the program"))
    changed = update_schedule_state(*names, {"status": "disabled"}, options)
    assert changed.status == "disabled"
    assert f"reporter/yearly: the state was changed to {changed}" in caplog.messages
    assert check_schedule(*names).skip_reason == "disabled"
    assert Schedule.objects.get(name="yearly").state == "paused"
    at = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    changed = update_schedule_state(*names, {"status": "idle", "next_run_at": at})
    assert (changed.status, changed.next_run_at) == ("idle", at)
    failed = update_schedule_state(*names, {"last_run_at": at, "last_error": "broken"})
    assert (failed.last_run_at, failed.last_error) == (at, "broken")
    with pytest.raises(SchedulerError, match="reporter/hook: unsupported_type"):
        update_schedule_state(None, "reporter", "hook", {"status": "idle"})


def test_a_check_names_the_reason_for_which_nothing_would_start(
    new_scheduler: NewScheduler, gate: Gate
):
    schedules = {"daily": ONCE_A_DAY, "yearly": FIRES_LATER, "hook": {"type": "chat"}}
    new_scheduler(gate).start([agent(schedules=schedules), agent("off", scale=0)])
    wait_for(lambda: gate.infos)

    def reason(name: str, of: str = "reporter") -> str | None:
        return check_schedule(None, of, name).skip_reason

    assert reason("daily") == "already_running"
    assert reason("yearly") == "at_capacity"
    assert reason("hook") == "unsupported_type"
    assert reason("daily", "off") == "disabled"
    gate.open.set()
    wait_for(lambda: reason("yearly") == "not_due")
    assert not check_schedule(None, "reporter", "yearly").should_trigger
    with pytest.raises(SchedulerError, match="no schedule 'dayly': did you mean 'daily'"):
        reason("dayly")


def test_a_due_schedule_passes_the_check(new_scheduler: NewScheduler):
    scheduler = new_scheduler()
    scheduler.start([agent(schedules={"yearly": FIRES_LATER})])
    scheduler.stop()
    names = (None, "reporter", "yearly")
    update_schedule_state(*names, {"next_run_at": datetime.now(UTC)})
    assert check_schedule(*names).skip_reason == "stopping"
    SchedulerRow.objects.update(state="running")
    assert check_schedule(*names).should_trigger


def test_a_prompt_marks_the_work_item_as_data(new_scheduler: NewScheduler):
    new_scheduler().start([agent(instructions="Be short.")])
    names = (None, "reporter", "daily")
    prompt = build_schedule_prompt(*names, {"title": "Fix </context> it"})
    assert prompt.startswith('Be short.\n\n<prompt trigger="schedule">\nReport.\n</prompt>')
    assert '"title": "Fix <\\/context> it"' in prompt
    assert "<context" not in build_schedule_prompt(*names)
    with pytest.raises(SchedulerError, match="work_item: expected a text or a table, not int"):
        build_schedule_prompt(*names, 5)  # type: ignore[arg-type]


# --- run_schedule ---------------------------------------------------------------------------


def test_a_schedule_is_run_at_once_and_keeps_its_next_time(new_scheduler: NewScheduler):
    scheduler = new_scheduler()
    scheduler.start([agent(schedules={"yearly": FIRES_LATER})])
    due_at = Schedule.objects.get().next_fire_at
    result = run_schedule(None, "reporter", "yearly")
    assert (result.success, result.state, result.skip_reason) == (True, "succeeded", None)
    assert result.run_id == Run.objects.get().pk
    assert result.duration_seconds is not None
    assert (result.work_item, result.processed_work_item) == (None, False)
    assert Schedule.objects.get().next_fire_at == due_at


def test_a_schedule_is_run_without_a_scheduler(new_scheduler: NewScheduler):
    scheduler = new_scheduler()
    scheduler.start([agent(schedules={"yearly": FIRES_LATER})])
    with pytest.raises(SchedulerError, match="on_trigger: a Scheduler of this process is running"):
        run_schedule(None, "reporter", "yearly", RunScheduleOptions(on_trigger=print))
    scheduler.stop()

    def refuse(_: TriggerInfo) -> None:
        raise RuntimeError("no")

    options = RunScheduleOptions(on_trigger=refuse)
    result = run_schedule(None, "reporter", "yearly", options)
    assert (result.success, result.state) == (False, "failed")
    assert result.error == "on_trigger: RuntimeError: no"
    assert SchedulerRow.objects.get().state == "stopped"


def test_a_run_that_is_skipped_says_why(new_scheduler: NewScheduler, gate: Gate):
    new_scheduler(gate).start([agent()])
    wait_for(lambda: gate.infos)
    result = run_schedule(None, "reporter", "daily")
    assert (result.success, result.skip_reason, result.run_id) == (False, "already_running", None)


def test_a_run_that_does_not_end_in_time_raises_and_goes_on(
    new_scheduler: NewScheduler, gate: Gate
):
    new_scheduler(gate).start([agent(schedules={"yearly": FIRES_LATER})])
    with pytest.raises(ScheduleTriggerError, match=r"has not ended after 0\.2 s") as raised:
        run_schedule(None, "reporter", "yearly", RunScheduleOptions(timeout=0.2))
    assert raised.value.context["agent"] == "reporter"
    gate.open.set()
    assert ended_run().state == "succeeded"


# --- the lease ------------------------------------------------------------------------------


def test_a_process_that_loses_its_lease_is_not_killed_and_takes_another(
    new_scheduler: NewScheduler,
):
    """Guard: a worker of Drover kills itself, and this process is the program's."""
    scheduler = new_scheduler()
    scheduler.start([agent()])
    ended_run()
    engine = scheduler._engine
    assert engine is not None
    lost = Worker.objects.get()
    Worker.objects.filter(pk=lost.pk).update(state="dead", ended_at=datetime.now(UTC))
    engine.executor._lease._renew()  # type: ignore[attr-defined]
    wait_for(lambda: Worker.objects.filter(ended_at__isnull=True).exclude(pk=lost.pk).exists())
    assert run_schedule(None, "reporter", "daily").success
    connection.close()
