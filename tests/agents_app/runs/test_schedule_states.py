"""The effect of the end of a run on its schedule."""

from agents_app.models import Schedule
from agents_app.runs import dispatch, lifecycle, schedule_states
from agents_app.runs.job import Ending
from agents_app.schedules import due, edit, firings
from tests.agents_app.fleet import NOON, Fleet, at


def test_an_interval_counts_from_the_end_of_the_last_rerun(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get(), at(10)), now=at(10), wants_rerun=True)
    assert not type(schedule).objects.filter(last_completed_at__isnull=False).exists()
    fleet.finish(fleet.start(agent.work_items.get(), at(10)), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (at(30), at(90))


def test_an_interval_counts_from_the_last_attempt(fleet: Fleet):
    agent = fleet.agent(retries=1)
    schedule = fleet.schedule(agent, "1m", interval_seconds=60, next_fire_at=at(60))
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get()), "failed", at(5))
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(60)
    dispatch.admit_waiting(agent.pk, at(15))
    fleet.finish(fleet.start(agent.work_items.get()), "failed", at(50))
    schedule.refresh_from_db()
    assert schedule.next_fire_at == at(110)


def test_the_completion_of_a_cron_run_does_not_move_its_next_fire(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "0 * * * *", next_fire_at=at(hours=1))
    fleet.fire(schedule)
    fleet.finish(fleet.start(agent.work_items.get()), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (at(30), at(hours=1))


def test_a_manual_run_does_not_change_the_schedule(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60, next_fire_at=at(60))
    fleet.finish(fleet.start(fleet.enqueue(agent)), now=at(30))
    schedule.refresh_from_db()
    assert (schedule.last_completed_at, schedule.next_fire_at) == (None, at(60))


def test_a_schedule_paused_during_its_run_stays_paused(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "1m", interval_seconds=60)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    schedule_states.pause_schedule(schedule.pk, NOON, "hold")
    fleet.finish(job, now=at(30))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.pause_note) == ("paused", "hold")


# --- counters, the last error and the time of the last change ----------------------------------


def reread(schedule: Schedule) -> Schedule:
    schedule.refresh_from_db()
    return schedule


def test_runs_are_counted_and_skips_are_not(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "* * * * *")
    for minute in range(3):
        due.claim_due_schedules(at(minutes=minute))
        firings.decide_firings(at(minutes=minute))
    seen = reread(schedule)
    assert (seen.run_count, seen.skipped_count, seen.fire_count) == (1, 2, 3)


def test_reruns_retries_and_queued_work_count_when_they_become_runs(fleet: Fleet):
    agent = fleet.agent(retries=1)
    schedule = fleet.schedule(agent, "* * * * *", overlap="queue")
    fleet.fire(schedule)
    first = agent.work_items.get()
    due.claim_due_schedules(at(minutes=1))
    firings.decide_firings(at(minutes=1))
    assert reread(schedule).run_count == 1
    fleet.finish(fleet.start(first, at(61)), now=at(62), wants_rerun=True)
    assert reread(schedule).run_count == 2
    fleet.finish(fleet.start(first, at(63)), "failed", at(64))
    assert reread(schedule).run_count == 3  # the queued work has the slot
    second = agent.work_items.latest("pk")
    fleet.finish(fleet.start(second, at(65)), now=at(200))
    assert reread(schedule).run_count == 4  # the retry
    assert schedule.run_count == agent.runs.count()


def test_a_run_that_could_not_begin_is_not_counted(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    lifecycle.give_back_run(job, Ending("unavailable", "no docker"), at(1), fleet.workers[0].pk)
    assert reread(schedule).run_count == 0


def test_the_last_error_stays_until_a_success(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "* * * * *")
    errors = []
    for minute, (state, error) in enumerate(
        (("failed", "exit code 3"), ("stopped", "stopped by ann"), ("succeeded", ""))
    ):
        due.claim_due_schedules(at(minutes=minute))
        firings.decide_firings(at(minutes=minute))
        item = agent.work_items.latest("pk")
        fleet.finish(fleet.start(item, at(minutes=minute)), state, at(minutes=minute), error=error)
        errors.append(reread(schedule).last_error)
    assert errors == ["exit code 3", "exit code 3", ""]


def test_the_error_of_a_run_whose_schedule_was_paused_meanwhile_is_kept(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent)
    fleet.fire(schedule)
    job = fleet.start(agent.work_items.get())
    schedule_states.pause_schedule(schedule.pk, at(1), "hold")
    fleet.finish(job, "failed", at(2), error="exit code 3")
    seen = reread(schedule)
    assert (seen.state, seen.last_error, seen.updated_at) == ("paused", "exit code 3", at(2))


def test_a_skipped_one_shot_has_its_reason_as_last_error(fleet: Fleet):
    agent = fleet.agent(paused_at=NOON)
    schedule = fleet.schedule(agent, "at 2026-03-02T12:00:00Z", one_shot=True)
    due.claim_due_schedules(NOON)
    firings.decide_firings(NOON)
    assert (reread(schedule).state, schedule.last_error) == ("failed", "skipped: paused")


def test_every_change_moves_updated_at(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, "* * * * *")
    moments = []

    def changed() -> None:
        moments.append(reread(schedule).updated_at)

    due.claim_due_schedules(at(0))
    changed()
    firings.decide_firings(at(1))  # the run is counted
    changed()
    due.claim_due_schedules(at(60))
    firings.decide_firings(at(61))  # skipped: the run is unfinished
    changed()
    fleet.finish(fleet.start(agent.work_items.get(), at(62)), now=at(63))
    changed()
    edit.pause(schedule, "ann", at(64))
    changed()
    edit.resume(schedule, "ann", at(65))
    changed()
    edit.cancel(schedule, "ann", at(66))
    changed()
    assert moments == [at(second) for second in (0, 1, 61, 63, 64, 65, 66)]
