"""The history of a schedule: texts about each firing and its work."""

from typing import Any

import pytest

from agents_app.models import Firing, Schedule, WorkItem
from agents_app.runs import control
from agents_app.schedules import edit, firings
from agents_app.schedules.why import explain
from tests.agents_app.fleet import NOON, Fleet, at


def read_firing(schedule: Schedule) -> tuple[str, str, str]:
    [entry] = explain(schedule, NOON).firings
    return entry.outcome, entry.outcome_text, entry.work_text


@pytest.mark.parametrize("reason", Firing.Reason.values)
def test_every_skip_reason_is_explained_in_a_sentence(fleet: Fleet, reason: str):
    schedule = fleet.schedule(fleet.agent())
    firing = fleet.firing(schedule)
    Firing.objects.filter(pk=firing.pk).update(outcome="skipped", reason=reason)
    outcome, outcome_text, work_text = read_firing(schedule)
    assert (outcome, work_text) == ("skipped", "")
    assert len(outcome_text.split()) > 2


def test_an_undecided_firing_is_explained_with_its_decision_time(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    firing = fleet.firing(schedule)
    Firing.objects.filter(pk=firing.pk).update(decide_at=at(30))
    text = "recorded, and it is decided at Mon 02 Mar 2026 12:00:30 UTC"
    assert read_firing(schedule) == ("undecided", text, "")


def test_a_failed_firing_is_explained_with_the_name_of_the_log_entry(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.firing(schedule)
    Firing.objects.update(outcome="failed")
    assert "firing.undecidable" in read_firing(schedule)[1]


def test_the_text_about_work_follows_its_run_from_pending_to_failed(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    item = WorkItem.objects.get()
    number = item.runs.get().pk
    started = ("started", "a slot was free")
    waits = f"run {number} has a slot and waits for a worker"
    assert read_firing(schedule) == (*started, waits)
    job = fleet.start(item)
    running = f"run {number} has been running since Mon 02 Mar 2026 12:00 UTC"
    assert read_firing(schedule) == (*started, running)
    fleet.finish(job, "failed", exit_code=3, error="out of sheep")
    assert read_firing(schedule) == (*started, f"run {number} failed: out of sheep")
    work = explain(schedule, NOON).firings[0].work
    assert work is not None
    assert (work.run, work.run_state, work.exit_code) == (number, "failed", 3)


def test_the_text_about_successful_work_names_the_run(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, exit_code=0)
    assert read_firing(schedule)[2] == f"run {job.run_id} succeeded"


def test_the_text_about_queued_work_has_its_position(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="queue")
    fleet.enqueue(agent)
    fleet.enqueue(agent)
    fleet.fire(schedule)
    fleet.enqueue(agent)
    outcome, outcome_text, work_text = read_firing(schedule)
    assert (outcome, outcome_text) == ("queued", "no slot was free, so its work was queued")
    assert work_text == "waits in the queue, 2 of 3"
    work = explain(schedule, NOON).firings[0].work
    assert work is not None and work.position == 2


def test_the_text_about_work_to_retry_has_the_earliest_time(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(retries=1))
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, "failed", exit_code=3, error="out of sheep")
    work_text = read_firing(schedule)[2]
    assert work_text.startswith(
        f"run {job.run_id} failed: out of sheep; will be retried, not before "
    )
    assert work_text.endswith(": waits in the queue, 1 of 1")


def test_the_text_about_dropped_work_has_the_reason(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="queue")
    fleet.enqueue(agent)
    fleet.fire(schedule)
    control.drop_work(WorkItem.objects.get(schedule=schedule), "ann", NOON)
    assert read_firing(schedule)[2] == "dropped: dropped by ann"


def test_the_text_about_deleted_work_says_that_it_is_no_longer_kept(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    WorkItem.objects.all().delete()
    text = "the agent's runs of that time are no longer kept"
    assert read_firing(schedule) == ("started", "a slot was free", text)


def test_the_explanation_of_a_late_firing_has_its_delay(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.firing(schedule)
    Firing.objects.update(recorded_at=at(minutes=7), decide_at=at(minutes=7))
    firings.decide_firings(at(minutes=7))
    assert read_firing(schedule)[1] == "a slot was free, 7 min late"
    assert explain(schedule, NOON).firings[0].late_seconds == 420


def test_the_history_has_the_latest_firings_up_to_the_limit(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), timezone="Europe/Berlin")
    for minute in range(4):
        fleet.firing(schedule, at(minutes=minute))
    locals_ = [entry.local[-9:] for entry in explain(schedule, NOON, limit=3).firings]
    assert locals_ == ["13:03 CET", "13:02 CET", "13:01 CET"]


def test_the_number_of_queries_does_not_grow_with_the_history(
    fleet: Fleet, django_assert_max_num_queries: Any
):
    agent = fleet.agent(scale=50)
    schedule = fleet.schedule(agent, overlap="queue")
    for minute in range(20):
        fleet.fire(schedule, at(minutes=minute))
    schedule = Schedule.objects.select_related("agent").get()
    with django_assert_max_num_queries(12):
        assert len(explain(schedule, NOON, limit=20).firings) == 20


def test_retried_work_is_listed_apart_from_the_firings(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, "failed", exit_code=3)
    item = edit.retry(schedule, "ann", at(60))
    seen = explain(schedule, NOON)
    assert len(seen.firings) == 1
    [again] = seen.retried_work
    assert (again.work_item, again.asked_at) == (item.pk, at(60))
    assert again.asked_by == "ann, retry of schedule main"
    assert again.text == f"run {item.runs.get().pk} has a slot and waits for a worker"
