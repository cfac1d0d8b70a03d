"""The journal as it grows, read from its end on."""

from datetime import timedelta

import pytest

from agents_app.events.tail import Tail, entries_between, newest_entry_id
from agents_app.models import Run, RunEvent, Tenant
from tests.agents_app.fleet import NOON, Fleet


@pytest.fixture
def fleet(transactional_db: None) -> Fleet:
    return Fleet(Tenant.objects.create(name="default"))


def entry(fleet: Fleet, **columns: object) -> int:
    values = {"tenant": fleet.tenant, "name": "agent.noted", "at": NOON, **columns}
    return RunEvent.objects.create(**values).pk


def ids(tail: Tail, most: int = 1000) -> list[int]:
    return [told.id for told in tail.read(0.0, most)]


def test_it_begins_where_the_journal_ends(fleet: Fleet):
    entry(fleet)
    last = entry(fleet)
    tail = Tail()
    assert (ids(tail), tail.cursor) == ([], last == newest_entry_id() and last)
    new = [entry(fleet), entry(fleet)]
    assert ids(tail) == new
    assert ids(tail) == []


def test_an_empty_journal_has_an_end_too(fleet: Fleet):
    tail = Tail()
    assert (ids(tail), newest_entry_id()) == ([], 0)
    first = entry(fleet)
    if first > 1:  # another test has used up the numbers before it
        ids(tail)
    assert tail.cursor == first or ids(tail) == [first]


def test_it_reads_no_more_at_once_than_it_is_asked_for(fleet: Fleet):
    tail = Tail()
    entry(fleet)
    ids(tail)
    new = [entry(fleet) for _ in range(5)]
    assert [ids(tail, 2), ids(tail, 2), ids(tail, 2)] == [new[:2], new[2:4], new[4:]]


def test_numbers_that_are_gone_for_good_are_passed_over(fleet: Fleet):
    tail = Tail()
    entry(fleet)
    ids(tail)
    first, gone, last = entry(fleet), entry(fleet), entry(fleet)
    RunEvent.objects.filter(pk=gone).delete()
    heard = ids(tail)
    # PostgreSQL needs a second query: a transaction may still be writing the entry.
    heard += ids(tail) if tail.is_waiting else []
    assert heard == [first, last]


def test_an_entry_brings_along_what_is_known_of_its_run(fleet: Fleet):
    tail = Tail()
    ids(tail)
    agent = fleet.agent("reporter")
    fleet.fire(fleet.schedule(agent))
    job = fleet.start(agent.work_items.get())
    Run.objects.filter(pk=job.run_id).update(result_summary="all is well")
    fleet.finish(job, "failed", NOON + timedelta(seconds=3), error="exit code 1")
    *_, told = entries_between(fleet.tenant.pk, 0, newest_entry_id())
    assert (told.name, told.agent, told.run_id) == ("run.failed", "reporter", job.run_id)
    assert told.schedule_id == agent.schedules.get().pk
    assert (told.started_at, told.finished_at) == (NOON, NOON + timedelta(seconds=3))
    assert (told.error, told.result_summary) == ("exit code 1", "all is well")


def test_a_history_is_of_one_tenant_and_comes_in_pages(fleet: Fleet):
    other = Fleet(Tenant.objects.create(name="acme"))
    mine = []
    for _ in range(3):
        mine.append(entry(fleet))
        entry(other)
    after = mine[0]
    first = entries_between(fleet.tenant.pk, after, newest_entry_id(), 1)
    assert [told.id for told in first] == mine[1:2]
    rest = entries_between(fleet.tenant.pk, mine[1], mine[2])
    assert [told.id for told in rest] == mine[2:]
    assert entries_between(fleet.tenant.pk, mine[1], mine[2] - 1) == []
