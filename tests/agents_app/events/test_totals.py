"""Ended runs are counted once and stay counted after their rows are deleted."""

import pytest

from agents_app.database.transactions import in_transaction
from agents_app.events.totals import Key, add_to_totals, buckets, observe, read_totals
from agents_app.maintenance import totals
from agents_app.maintenance.retention import remove_old_rows
from agents_app.maintenance.totals import count_totals
from agents_app.models import (
    Delivery,
    Firing,
    MetricCursor,
    MetricTotal,
    RunEvent,
    Schedule,
    WebhookSource,
)
from agents_app.runs import control
from agents_app.schedules import firings
from agents_app.webhooks import sources
from tests.agents_app.fleet import NOON, Fleet, at

LATER = at(minutes=5)


def counted(name: str) -> dict[Key, float]:
    return {key[1:]: value for key, value in read_totals().items() if key[0] == name}


def run_for(fleet: Fleet, seconds: float, state: str = "succeeded") -> None:
    agent = fleet.agent(f"agent-{fleet.tenant.agents.count()}")
    fleet.finish(fleet.start(fleet.enqueue(agent)), state, at(seconds))


# --- runs -----------------------------------------------------------------------------------


def test_ends_of_runs_are_counted_with_how_long_they_took(fleet: Fleet):
    run_for(fleet, 0.3)
    run_for(fleet, 0.5)
    run_for(fleet, 40)
    run_for(fleet, 100_000, "timed_out")
    count_totals(at(days=2))
    assert counted("events")["run.succeeded",] == 3
    assert counted("events")["run.timed_out",] == 1
    took = counted("run_duration_seconds")
    assert took == {("succeeded", "0.5"): 2, ("succeeded", "60"): 1, ("timed_out", "+Inf"): 1}
    assert counted("run_duration_seconds_sum")["succeeded",] == pytest.approx(40.8)


def test_a_run_that_never_started_took_no_time(fleet: Fleet):
    agent = fleet.agent()
    fleet.enqueue(agent)
    control.stop_agent(agent, "ann", NOON)
    count_totals(LATER)
    assert counted("events")["run.stopped",] == 1
    assert counted("run_duration_seconds") == {}


def test_nothing_is_counted_twice(fleet: Fleet):
    run_for(fleet, 1)
    count_totals(LATER)
    before = read_totals()
    count_totals(LATER)
    assert read_totals() == before
    run_for(fleet, 1)
    count_totals(LATER)
    assert counted("events")["run.succeeded",] == 2


def test_the_newest_wait_until_all_that_came_with_them_can_be_seen(fleet: Fleet):
    run_for(fleet, 1)
    count_totals(at(5))
    assert read_totals() == {}
    count_totals(at(11))
    assert counted("events")["run.succeeded",] == 1


def test_more_than_one_bite_is_taken(fleet: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(totals, "ROWS_IN_ONE_COMMIT", 2)
    for _ in range(4):
        run_for(fleet, 1)
    count_totals(LATER)
    assert sum(counted("events").values()) == RunEvent.objects.count() == 12


def test_what_two_beats_count_at_once_is_counted_once(fleet: Fleet, monkeypatch):
    """The second one has read the cursor before the first one moves it."""
    run_for(fleet, 1)
    stale = totals._cursor("drover_run_event")
    count_totals(LATER)
    before = read_totals()
    monkeypatch.setattr(totals, "_cursor", lambda _table: stale)
    assert not totals._count_batch("drover_run_event", LATER)
    assert read_totals() == before


def test_a_count_never_goes_back_when_old_rows_are_removed(fleet: Fleet):
    run_for(fleet, 1)
    fleet.fire(fleet.schedule(fleet.agent()))
    count_totals(LATER)
    before = read_totals()
    remove_old_rows(at(days=60))
    assert not RunEvent.objects.filter(name="run.succeeded").exists()
    run_for(fleet, 1)
    count_totals(at(days=61))
    after = read_totals()
    assert all(after[key] >= count for key, count in before.items())
    assert counted("events")["run.succeeded",] == 2


# --- firings --------------------------------------------------------------------------------


def test_firings_are_counted_by_outcome_and_reason_and_how_late_they_were(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    fleet.fire(schedule)
    fleet.fire(schedule, at(60))
    Firing.objects.filter(due_at=at(60)).update(recorded_at=at(64))
    count_totals(LATER)
    assert counted("firings") == {("started", ""): 1, ("skipped", "already_running"): 1}
    assert counted("firing_lateness_seconds") == {("0.01",): 1, ("5",): 1}
    assert counted("firing_lateness_seconds_sum") == {(): 4}


def test_one_that_waits_for_its_outcome_is_counted_once_it_has_it(fleet: Fleet):
    schedule = fleet.schedule(fleet.agent())
    waiting = fleet.firing(schedule)
    Firing.objects.update(decide_at=at(hours=1))
    fleet.fire(schedule, at(60))
    for _ in range(2):
        count_totals(LATER)
        assert counted("firings") == {("started", ""): 1}
    assert MetricCursor.objects.get(table="drover_firing").left == [waiting.pk]
    firings.decide_firings(at(hours=1))
    for _ in range(2):
        count_totals(at(hours=2))
        assert counted("firings") == {("started", ""): 1, ("skipped", "already_running"): 1}
    assert counted("firing_lateness_seconds") == {("0.01",): 2}
    assert MetricCursor.objects.get(table="drover_firing").left == []


def test_one_that_is_deleted_without_an_outcome_is_not_waited_for(fleet: Fleet):
    fleet.firing(fleet.schedule(fleet.agent()))
    count_totals(LATER)
    Schedule.objects.all().delete()
    count_totals(LATER)
    assert MetricCursor.objects.get(table="drover_firing").left == []


def test_while_very_many_wait_no_further_ones_are_counted(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(totals, "MAX_UNDECIDED", 2)
    monkeypatch.setattr(totals, "ROWS_IN_ONE_COMMIT", 1)
    schedule = fleet.schedule(fleet.agent(), overlap="queue")
    for number in range(4):
        fleet.firing(schedule, at(number))
    count_totals(LATER)
    assert len(MetricCursor.objects.get(table="drover_firing").left) == 2
    firings.decide_firings(LATER)
    count_totals(LATER)
    count_totals(LATER)
    assert sum(counted("firings").values()) == 4


# --- deliveries -----------------------------------------------------------------------------


def test_deliveries_are_counted_by_provider_and_outcome(fleet: Fleet):
    source = WebhookSource.objects.create(tenant=fleet.tenant, name="gh", type="github")
    for number, outcome in enumerate(["matched", "matched", "unparseable", "refused"]):
        Delivery.objects.create(
            tenant=fleet.tenant,
            source=source,
            provider="github",
            delivery_id=str(number),
            received_at=NOON,
            outcome=outcome,
            headers="{}",
            body=b"",
        )
    count_totals(LATER)
    assert counted("deliveries") == {("github", "matched"): 2, ("github", "unparseable"): 1}
    refused = {("github", "bad_signature"): 3}
    for _ in range(2):
        sources.record_refused({source.pk: 3}, refused, (), LATER)
    assert counted("deliveries_refused") == {("github", "bad_signature"): 6}


# --- the table ------------------------------------------------------------------------------


def test_counts_are_added_to_what_is_there_however_many(fleet: Fleet):
    many: dict[Key, float] = {("a", str(number)): number for number in range(500)}
    for _ in range(2):
        in_transaction(lambda: add_to_totals(many))
    in_transaction(lambda: add_to_totals({}))
    assert MetricTotal.objects.count() == 500
    assert counted("a")["7",] == 14


def test_buckets_hold_all_that_are_smaller_also_of_bounds_that_were_others_once():
    counts: dict[Key, float] = {("x", "0.7"): 5}
    for value in (0.5, 1, 1.5, 99):
        observe(counts, ("x",), (1, 2), value)
    assert buckets(counts, ("x",), (1, 2)) == [("0.7", 5), ("1", 7), ("2", 8), ("+Inf", 9)]
    assert counts["x_sum",] == 102
