"""The effect of the end of a run on its schedule."""

from agents_app.runs import dispatch, schedule_states
from tests.agents_app.fleet import Fleet, at


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
    schedule_states.pause_schedule(schedule.pk, "hold")
    fleet.finish(job, now=at(30))
    schedule.refresh_from_db()
    assert (schedule.state, schedule.pause_note) == ("paused", "hold")
