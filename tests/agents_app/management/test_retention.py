"""`retention` counts old rows and removes them on request."""

from datetime import UTC, datetime, timedelta

from agents_app.models import Heartbeat
from tests.agents_app.fleet import Fleet
from tests.agents_app.management.calling import call


def test_old_rows_are_counted_first_and_then_removed(fleet: Fleet):
    now = datetime.now(UTC)
    run_id = fleet.start(fleet.enqueue(fleet.agent())).run_id
    for days in (0, 8, 9):
        Heartbeat.objects.create(
            **{"tenant": fleet.tenant, "worker": fleet.workers[0], "run_id": run_id},
            **{"state": "busy", "at": now - timedelta(days=days)},
        )
    assert call("retention", "--dry-run").out == "2 old rows would be removed\n"
    assert Heartbeat.objects.count() == 3
    assert call("retention", "--json").json == {"old": 2, "removed": 2}
    assert Heartbeat.objects.count() == 1
    assert call("retention").out == "0 old rows removed\n"
