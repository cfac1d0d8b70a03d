"""The migration that finds the actors of events that earlier versions recorded."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from agents_app import migrations
from agents_app.models import RunEvent
from tests.agents_app.fleet import NOON, Fleet

[FILE] = Path(migrations.__path__[0]).glob("*_audit_actor_of_old_events.py")
MIGRATION: Any = import_module(f"agents_app.migrations.{FILE.stem}")


def fill() -> None:
    MIGRATION.fill_actor(apps, SimpleNamespace(connection=connection))


def store(fleet: Fleet, name: str, detail: str, **columns: Any) -> RunEvent:
    return RunEvent.objects.create(
        tenant=fleet.tenant, name=name, at=NOON, detail=detail, **columns
    )


@pytest.mark.parametrize(
    ("name", "detail", "actor"),
    [
        ("agent.paused", "ann: too loud: by bob", "ann"),
        ("agent.resumed", "token ci", "token ci"),
        ("schedule.edited", "weekly: ann: prompt, text", "ann"),
        ("tenant.deleted", "acme: ann", "ann"),
        ("lock.broken", "file:///srv/map, held by run 7 of reporter: ann", "ann"),
        ("agent.messaged", "by rule tell", "rule tell"),
        ("work.dropped", "work item 4: dropped by token ci", "token ci"),
        ("login.failed", "ann from 203.0.113.7", "ann"),
        ("login.locked", "a from b from 203.0.113.7: too many failed attempts", "a from b"),
        ("run.stop_requested", "stopped by ann", "ann"),
        ("run.stop_requested", "stopped by itself", "run 7"),
        ("run.stop_requested", "its schedule was deleted by ann", "ann"),
        ("run.stop_requested", "its tenant was deleted by ann", "ann"),
        ("run.stop_requested", "replaced by a newer firing", ""),
        ("run.stop_requested", "over its time limit", ""),
        ("run.stopped", "stopped by ann", ""),
        # Was in the audit without a name.
        ("work.dropped", "odd", "unknown"),
        ("agent.resumed", "", "unknown"),
    ],
)
def test_the_actor_of_an_old_event_is_found_in_its_detail(
    fleet: Fleet, name: str, detail: str, actor: str
):
    event = store(fleet, name, detail, run_id=7 if name.startswith("run.") else None)
    fill()
    event.refresh_from_db()
    assert (event.actor, event.detail) == (actor, detail)


def test_all_batches_are_filled_and_a_known_actor_is_kept(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(MIGRATION, "ROWS_AT_ONCE", 3)
    for number in range(10):
        store(fleet, "agent.resumed", f"user {number}")
        store(fleet, "run.started", "by itself")
    known = store(fleet, "agent.resumed", "token x: by admin", actor="token x: by admin")
    for _ in range(2):
        fill()
        filled = RunEvent.objects.filter(name="agent.resumed").order_by("pk")
        actors = [*(f"user {number}" for number in range(10)), known.actor]
        assert list(filled.values_list("actor", flat=True)) == actors
        assert not RunEvent.objects.filter(name="run.started").exclude(actor="").exists()
