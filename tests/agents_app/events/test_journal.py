"""A journal entry is written with the change that it describes, and logged after the commit."""

import logging

import pytest
from django.db import transaction

from agents_app.events import journal
from agents_app.events.journal import JournalEntry
from agents_app.models import Run, RunEvent
from tests.agents_app.fleet import NOON, Fleet, at


def test_entries_are_rows_in_the_order_they_were_given(fleet: Fleet):
    agent = fleet.agent()
    journal.record(
        JournalEntry("agent.paused", NOON, fleet.tenant.pk, agent.pk, detail="ann"),
        JournalEntry("agent.resumed", at(5), fleet.tenant.pk, agent.pk),
    )
    events = RunEvent.objects.order_by("id").values_list("name", "at", "agent_id", "detail")
    assert list(events) == [
        ("agent.paused", NOON, agent.pk, "ann"),
        ("agent.resumed", at(5), agent.pk, ""),
    ]


def test_a_long_detail_is_cut_rather_than_refused(fleet: Fleet):
    journal.record(JournalEntry("agent.paused", NOON, fleet.tenant.pk, detail="x" * 10_000))
    assert len(RunEvent.objects.get().detail) == 500


def test_an_entry_of_a_change_that_was_undone_is_neither_kept_nor_logged(
    durable_fleet: Fleet, caplog
):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        journal.record(JournalEntry("agent.paused", NOON, durable_fleet.tenant.pk))
        raise ZeroDivisionError
    assert not RunEvent.objects.exists()
    assert not [r for r in caplog.records if r.name == "drover"]


def test_an_entry_is_logged_when_it_is_on_disk_and_not_before(durable_fleet: Fleet, caplog):
    with transaction.atomic():
        journal.record(JournalEntry("agent.paused", NOON, durable_fleet.tenant.pk, detail="ann"))
        assert not caplog.records
    (line,) = [r.msg for r in caplog.records]
    assert (line["event"], line["tenant_id"]) == ("agent.paused", durable_fleet.tenant.pk)


def test_the_start_and_the_end_of_a_run_are_logged_at_info_and_its_admission_at_debug(
    durable_fleet: Fleet, caplog
):
    caplog.set_level(logging.DEBUG, logger="drover")
    durable_fleet.finish(durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent())))
    traces = {r.msg["trace_id"] for r in caplog.records if r.name == "drover"}
    assert traces == {Run.objects.get().trace_id}
    levels = {r.msg["event"]: r.levelname for r in caplog.records if r.name == "drover"}
    assert levels == {"run.admitted": "DEBUG", "run.started": "INFO", "run.succeeded": "INFO"}
