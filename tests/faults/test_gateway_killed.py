"""kill -9 of the gateway during deliveries: acknowledged deliveries are stored once."""

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import SECRET, Sender, hooked, stored, worked
from tests.parts.waiting import wait_for

DELIVERIES, KILLS = 3000, 5


@pytest.mark.timeout(180)
@pytest.mark.fault("F23")
def test_a_gateway_killed_five_times_has_stored_each_acknowledged_delivery_once(
    new_fleet: NewFleet,
) -> None:
    """Guard: the answer is sent after the commit, and the index on source and id finds repeated
    deliveries. With an answer before the commit, acknowledged deliveries are missing; without the
    index, deliveries that were committed but not acknowledged are stored twice."""
    fleet = hooked(new_fleet(HOOK_SECRET=SECRET), "triage", work_queue_size=DELIVERIES)
    fleet.ensure("gateway")
    ids = [f"d-{number}" for number in range(DELIVERIES)]
    sender = Sender(fleet.stack.conf.port, ids).start()
    for kill in range(1, KILLS + 1):
        reached = kill * DELIVERIES // (KILLS + 1)
        wait_for(lambda goal=reached: len(sender.acknowledged) >= goal, 60)  # type: ignore[misc]
        fleet.stack.kill("gateway")
        before = set(sender.acknowledged)
        assert before <= stored(fleet).keys()
        fleet.stack.start("gateway")
    sender.wait(60)
    assert sender.broken >= KILLS
    assert sorted(sender.acknowledged) == sorted(ids)
    assert stored(fleet) == dict.fromkeys(ids, 1)
    assert worked(fleet) == dict.fromkeys(ids, 1)
