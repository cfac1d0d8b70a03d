"""Every firing in a sentence, and what became of its work."""

from typing import Any

import pytest

from agents_app.models import Firing, Schedule, WorkItem
from agents_app.runs import control
from agents_app.schedules import edit, firings
from agents_app.schedules.why import explain
from tests.agents_app.fleet import NOON, Fleet, at


def seen_firing(schedule: Schedule) -> tuple[str, str, str]:
    [entry] = explain(schedule, NOON).firings
    return entry.outcome, entry.because, entry.became


@pytest.mark.parametrize("reason", Firing.Reason.values)
def test_every_reason_is_a_sentence(fleet: Fleet, reason: str):
    schedule = fleet.schedule(fleet.agent())
    firing = fleet.firing(schedule)
    Firing.objects.filter(pk=firing.pk).update(outcome="skipped", reason=reason)
    outcome, because, became = seen_firing(schedule)
    assert (outcome, became) == ("skipped", "")
    assert len(because.split()) > 2


def test_a_firing_that_is_not_decided_says_when_it_will_be(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    firing = fleet.firing(schedule)
    Firing.objects.filter(pk=firing.pk).update(decide_at=at(30))
    text = "recorded, and it is decided at Mon 02 Mar 2026 12:00:30 UTC"
    assert seen_firing(schedule) == ("undecided", text, "")


def test_a_firing_that_could_not_be_decided_points_to_the_log(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.firing(schedule)
    Firing.objects.update(outcome="failed")
    assert "firing.undecidable" in seen_firing(schedule)[1]


def test_work_is_told_from_its_slot_to_its_end(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    item = WorkItem.objects.get()
    number = item.runs.get().pk
    started = ("started", "a slot was free")
    waits = f"run {number} has a slot and waits for a worker"
    assert seen_firing(schedule) == (*started, waits)
    job = fleet.start(item)
    goes_on = f"run {number} goes on since Mon 02 Mar 2026 12:00 UTC"
    assert seen_firing(schedule) == (*started, goes_on)
    fleet.finish(job, "failed", exit_code=3, error="out of sheep")
    assert seen_firing(schedule) == (*started, f"run {number} failed: out of sheep")
    work = explain(schedule, NOON).firings[0].work
    assert work is not None
    assert (work.run, work.run_state, work.exit_code) == (number, "failed", 3)


def test_work_that_went_well_says_so(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, exit_code=0)
    assert seen_firing(schedule)[2] == f"run {job.run_id} succeeded"


def test_queued_work_says_where_it_stands(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="queue")
    fleet.ask(agent)
    fleet.ask(agent)
    fleet.fire(schedule)
    fleet.ask(agent)
    outcome, because, became = seen_firing(schedule)
    assert (outcome, because) == ("queued", "no slot was free, so its work was queued")
    assert became == "waits in the queue, 2 of 3"
    work = explain(schedule, NOON).firings[0].work
    assert work is not None and work.position == 2


def test_work_that_will_be_tried_again_says_from_when_on(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(retries=1))
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, "failed", exit_code=3, error="out of sheep")
    became = seen_firing(schedule)[2]
    assert became.startswith(f"run {job.run_id} failed: out of sheep; tries again, not before ")
    assert became.endswith(": waits in the queue, 1 of 1")


def test_dropped_work_says_why(fleet: Fleet):
    agent = fleet.agent()
    schedule = fleet.schedule(agent, overlap="queue")
    fleet.ask(agent)
    fleet.fire(schedule)
    control.drop_work(WorkItem.objects.get(schedule=schedule), "ann", NOON)
    assert seen_firing(schedule)[2] == "dropped: dropped by ann"


def test_work_that_is_no_longer_kept_is_not_invented(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    WorkItem.objects.all().delete()
    text = "the agent's runs of that time are no longer kept"
    assert seen_firing(schedule) == ("started", "a slot was free", text)


def test_a_late_firing_says_how_late(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.firing(schedule)
    Firing.objects.update(recorded_at=at(minutes=7), decide_at=at(minutes=7))
    firings.decide_firings(at(minutes=7))
    assert seen_firing(schedule)[1] == "a slot was free, 7 min late"
    assert explain(schedule, NOON).firings[0].late_seconds == 420


def test_the_latest_come_first_and_no_more_than_asked_for(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent(), timezone="Europe/Berlin")
    for minute in range(4):
        fleet.firing(schedule, at(minutes=minute))
    locals_ = [entry.local[-9:] for entry in explain(schedule, NOON, limit=3).firings]
    assert locals_ == ["13:03 CET", "13:02 CET", "13:01 CET"]


def test_however_long_the_ledger_the_questions_to_the_database_are_few(
    fleet: Fleet, django_assert_max_num_queries: Any
):
    agent = fleet.agent(scale=50)
    schedule = fleet.schedule(agent, overlap="queue")
    for minute in range(20):
        fleet.fire(schedule, at(minutes=minute))
    schedule = Schedule.objects.select_related("agent").get()
    with django_assert_max_num_queries(12):
        assert len(explain(schedule, NOON, limit=20).firings) == 20


def test_what_was_asked_for_again_is_told_beside_the_firings(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    job = fleet.start(WorkItem.objects.get())
    fleet.finish(job, "failed", exit_code=3)
    item = edit.retry(schedule, "ann", at(60))
    seen = explain(schedule, NOON)
    assert len(seen.firings) == 1
    [again] = seen.asked_again
    assert (again.work_item, again.asked_at) == (item.pk, at(60))
    assert again.asked_by == "ann, retry of schedule main"
    assert again.text == f"run {item.runs.get().pk} has a slot and waits for a worker"
