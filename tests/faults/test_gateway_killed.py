"""Bursts of deliveries, and a gateway that is killed or stopped during them."""

import asyncio
import signal
import time

import pytest

from tests.faults.conftest import NewFleet
from tests.faults.hooks import SECRET, Sender, hooked, read_answer, request, stored, worked
from tests.faults.real_fleet import RealFleet
from tests.parts.processes import ProcessorShare
from tests.parts.waiting import wait_for

BURST, CONNECTIONS = 10_000, 200
DELIVERIES, DELIVERIES_ON_POSTGRES, KILLS = 2400, 1200, 5
STOP_SECONDS = 10.0


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = hooked(new_fleet(HOOK_SECRET=SECRET), "triage", work_queue_size=20_000)
    fleet.ensure("gateway")
    return fleet


def stored_of(fleet: RealFleet, ids: list[str]) -> dict[str, int]:
    found, wanted = stored(fleet), set(ids)
    return {identity: count for identity, count in found.items() if identity in wanted}


@pytest.mark.timeout(300)
@pytest.mark.fault("F61")
def test_each_delivery_of_a_burst_is_stored_once_or_refused_and_answered_in_a_second(
    fleet: RealFleet,
) -> None:
    """Guard: deliveries are stored in groups, one commit for many. With a commit for each, the
    last of two hundred connections waits for seconds."""
    fleet.ensure("gateway")
    ids = [f"burst-{number}" for number in range(BURST)]
    processor = ProcessorShare(fleet.stack.processes["gateway"].pid)
    sender = Sender(fleet.stack.conf.port, ids, connections=CONNECTIONS, stubborn=False)
    sender.start().wait(240)
    share = processor.share()
    assert set(sender.statuses) <= {200, 503} and sender.broken == 0
    assert sum(sender.statuses.values()) == len(ids)
    assert stored_of(fleet, ids) == dict.fromkeys(sender.acknowledged, 1)
    # Other tests use this machine as well: the time does not count in which the gateway was ready
    # to run and had no processor. The time in which it waited for the database does.
    assert sorted(sender.seconds)[BURST * 99 // 100] * share < 1


@pytest.mark.timeout(180)
@pytest.mark.fault("F23")
def test_a_gateway_killed_five_times_has_stored_each_acknowledged_delivery_once(
    fleet: RealFleet, on_postgres: bool
) -> None:
    """Guard: the answer is sent after the commit, and the index on source and id finds repeated
    deliveries. With an answer before the commit, acknowledged deliveries are missing; without the
    index, deliveries that were committed but not acknowledged are stored twice."""
    fleet.ensure("gateway")
    count = DELIVERIES_ON_POSTGRES if on_postgres else DELIVERIES
    ids = [f"d-{number}" for number in range(count)]
    sender = Sender(fleet.stack.conf.port, ids).start()
    for kill in range(1, KILLS + 1):
        reached = kill * count // (KILLS + 1)
        wait_for(lambda goal=reached: len(sender.acknowledged) >= goal, 60)  # type: ignore[misc]
        fleet.stack.kill("gateway")
        before = set(sender.acknowledged)
        assert before <= stored(fleet).keys()
        fleet.stack.start("gateway")
    sender.wait(60)
    assert sender.broken >= KILLS
    assert sorted(sender.acknowledged) == sorted(ids)
    assert stored_of(fleet, ids) == dict.fromkeys(ids, 1)
    work = worked(fleet)
    assert {identity: work[identity] for identity in ids} == dict.fromkeys(ids, 1)


@pytest.mark.fault("F24")
def test_a_gateway_that_is_stopped_answers_the_deliveries_that_it_has_begun_to_read(
    fleet: RealFleet,
) -> None:
    """Guard: the gateway closes its port and finishes open requests. If it exited at once, their
    senders would get no answer."""
    fleet.ensure("gateway")
    process = fleet.stack.processes["gateway"]
    ids = [f"open-{number}" for number in range(20)]

    async def send_half(identity: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", fleet.stack.conf.port)
        writer.write(request(identity)[:-500])
        await writer.drain()
        return reader, writer

    async def send_all() -> list[int]:
        streams = [await send_half(identity) for identity in ids]
        await asyncio.sleep(0.5)
        process.terminate()
        await asyncio.sleep(0.5)
        for identity, (_, writer) in zip(ids, streams, strict=True):
            writer.write(request(identity)[-500:])
        return [(await read_answer(reader))[0] for reader, _ in streams]

    began = time.monotonic()
    assert asyncio.run(send_all()) == [200] * len(ids)
    # When it has finished, uvicorn ends its process by the signal that it got.
    assert fleet.wait_for_exit("gateway") in (0, -signal.SIGTERM)
    assert time.monotonic() - began < STOP_SECONDS
    assert stored_of(fleet, ids) == dict.fromkeys(ids, 1)
