"""Ways to stop a whole installation, and its state after the next start."""

import asyncio
import itertools
import signal
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.faults.hooks import SECRET, Sender, hooked, read_answer, request, stored, worked
from tests.faults.real_fleet import QUICK, WHEN_TOLD, WITH_DAEMONS, RealFleet
from tests.parts.processes import all_gone, is_gone, tree_of
from tests.parts.stack_part import PrivateStack
from tests.parts.waiting import wait_for

pytestmark = pytest.mark.slow

AGAIN = "press Ctrl-C again to stop running agents"
GATEWAY_STOP_SECONDS = 10.0
OPEN_REQUESTS = [f"open-{number}" for number in range(20)]


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory, migrated_database: Callable[[Path], str]
) -> Iterator[RealFleet]:
    directory = tmp_path_factory.mktemp("stopping")
    database = migrated_database(directory / "data")
    fleet = RealFleet(PrivateStack(directory, database, **QUICK, HOOK_SECRET=SECRET))
    hooked(fleet, "triage", scale=4)
    yield fleet
    fleet.close()


@pytest.fixture
def fleet(installation: RealFleet) -> RealFleet:
    """One installation for all tests, running; each test has its own agents."""
    up = installation.stack.processes.get("up")
    if up is None or up.poll() is not None:
        installation.stack.up()
    return installation


def add_agent(fleet: RealFleet, name: str, body: str, **fields: object) -> None:
    fleet.agent(name, body, **fields)
    fleet.stack.wait_for_rows("SELECT 1 FROM drover_agent WHERE name = ?", name)


def all_processes(fleet: RealFleet) -> list[int]:
    """All processes of the stack, and of its runs."""
    return tree_of(fleet.stack.processes["up"].pid)


def exit_status(fleet: RealFleet, seconds: float = 30) -> int:
    return fleet.wait_for_exit("up", seconds)


def gateway_answers(fleet: RealFleet) -> bool:
    """A run reports to the gateway until its end, also while Drover stops."""
    with urllib.request.urlopen(f"{fleet.stack.url}/healthz", timeout=10) as answer:
        return bool(answer.status == 200)


@pytest.mark.fault("F24")
def test_ctrl_c_drains_a_second_ctrl_c_ends_the_runs_and_queued_work_is_kept(
    fleet: RealFleet,
) -> None:
    """Guard: `up` stops beat first, lets the workers drain, and writes nothing to the queue. If it
    cleared the queue, the second run would never start; if it killed the workers, the first run
    would be lost."""
    add_agent(fleet, "patient", WHEN_TOLD)
    add_agent(fleet, "stubborn", WITH_DAEMONS)
    up = fleet.stack.processes["up"]
    fleet.enqueue("patient", 3)
    fleet.wait_until_running("patient")
    pids = all_processes(fleet)
    up.send_signal(signal.SIGINT)
    fleet.stack.wait_for_rows("SELECT 1 FROM drover_worker WHERE state = 'draining'")
    wait_for(lambda: "waiting for 1 run to finish" in fleet.stack.log("up"), 15)
    fleet.stack.wait_for_rows("SELECT 1 FROM drover_scheduler WHERE state = 'draining'")
    assert gateway_answers(fleet)
    fleet.let_finish("patient")
    assert exit_status(fleet) == 0
    assert all_gone(pids)
    assert fleet.states("patient") == ["succeeded"]
    assert len(fleet.notes("patient", "start")) == 1
    assert fleet.work("patient") == ["done", "queued", "queued"]
    assert fleet.scheduler_state() == "stopped"
    up = fleet.stack.up()
    fleet.wait_for_states("patient", "succeeded", "succeeded", "succeeded")
    fleet.enqueue("stubborn", 2)
    fleet.wait_for_notes("stubborn", "note", 2)
    pids = all_processes(fleet) + [note.pid for note in fleet.notes("stubborn")]
    announced = fleet.stack.log("up").count(AGAIN)
    up.send_signal(signal.SIGINT)
    wait_for(lambda: fleet.stack.log("up").count(AGAIN) == announced + 1)
    up.send_signal(signal.SIGINT)
    assert exit_status(fleet) == 0
    assert all_gone(pids)
    assert fleet.states("stubborn")[0] == "stopped"
    assert fleet.runs("stubborn")[0]["error"] == "Drover was stopped"
    assert len(fleet.notes("stubborn", "start")) == 1
    # The next `up` starts the second work item, whose run must not last during other tests.
    fleet.let_finish("stubborn")


@pytest.mark.fault("F24")
def test_a_stop_under_load_answers_open_requests_and_the_next_start_does_all_acknowledged_work(
    fleet: RealFleet,
) -> None:
    """Guard: the gateway is stopped after the workers and finishes the requests that it has begun
    to read. If it were killed, their senders would get no answer; if the stop cleared the queue,
    acknowledged deliveries would never run."""
    add_agent(fleet, "under-load", WHEN_TOLD)
    sending = threading.Event()
    sending.set()
    sender = Sender(fleet.stack.conf.port, ids_while(sending), connections=4, stubborn=False)
    sender.start()
    fleet.enqueue("under-load", 2)
    fleet.wait_until_running("under-load")
    wait_for(lambda: len(sender.acknowledged) >= 20, 20, "no delivery was acknowledged")
    pids = all_processes(fleet)
    fleet.stack.processes["up"].terminate()
    fleet.stack.wait_for_rows("SELECT 1 FROM drover_worker WHERE state = 'draining'")
    statuses, stopped_at = asyncio.run(send_during_the_stop(fleet, "under-load", OPEN_REQUESTS))
    sending.clear()
    assert statuses == [200] * len(OPEN_REQUESTS)
    assert exit_status(fleet) == 0
    assert time.monotonic() - stopped_at < GATEWAY_STOP_SECONDS
    assert all_gone(pids)
    sender.wait(20)
    assert set(sender.statuses) == {200}
    acknowledged = dict.fromkeys([*sender.acknowledged, *OPEN_REQUESTS], 1)
    assert acknowledged.items() <= stored(fleet).items()
    assert fleet.work("under-load") == ["done", "queued"]
    fleet.stack.up()
    fleet.wait_for_states("under-load", "succeeded", "succeeded")
    wait_for(
        lambda: set(fleet.work("triage")) == {"done"},
        60,
        lambda: f"deliveries are left: {Counter(fleet.work('triage'))} {fleet.facts('triage')}",
    )
    assert worked(fleet) == stored(fleet)
    assert set(fleet.states("triage")) == {"succeeded"}
    assert len(fleet.runs("triage")) == len(fleet.work("triage"))


def ids_while(sending: threading.Event) -> Iterator[str]:
    """About ten deliveries in a second: a slow machine must do them all after the next start."""
    for number in itertools.takewhile(lambda _: sending.is_set(), itertools.count()):
        time.sleep(0.1)
        yield f"load-{number}"


async def send_during_the_stop(
    fleet: RealFleet, agent: str, ids: Sequence[str]
) -> tuple[list[int], float]:
    """Send the second half of each delivery after the gateway has closed its port.

    Returns the statuses and the time at which the port was closed."""
    port = fleet.stack.conf.port
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in ids]
    for identity, (_, writer) in zip(ids, streams, strict=True):
        writer.write(request(identity)[:-500])
    await asyncio.sleep(0.5)
    fleet.let_finish(agent)
    await asyncio.to_thread(wait_for, lambda: not port_is_open(port), 20, "the port is open")
    closed_at = time.monotonic()
    for identity, (_, writer) in zip(ids, streams, strict=True):
        writer.write(request(identity)[-500:])
    return [(await read_answer(reader))[0] for reader, _ in streams], closed_at


def port_is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_killed_stack_leaves_no_process_and_the_next_start_continues(fleet: RealFleet) -> None:
    """Guard: every process dies with its parent, and a run with its guard. Without that the
    processes of the first `up` run during the second, and the old run during its retry."""
    add_agent(fleet, "orphaned", WITH_DAEMONS, on_lost="retry")
    up = fleet.stack.processes["up"]
    fleet.enqueue("orphaned")
    fleet.wait_for_notes("orphaned", "note", 2)
    pids = all_processes(fleet) + [note.pid for note in fleet.notes("orphaned")]
    up.kill()
    assert exit_status(fleet) == -signal.SIGKILL
    wait_for(lambda: all_gone(pids), 8, f"left: {[pid for pid in pids if not is_gone(pid)]}")
    fleet.let_finish("orphaned")
    fleet.stack.up()
    fleet.wait_for_states("orphaned", "lost", "succeeded")
    assert fleet.notes("orphaned", "overlap") == []


def test_after_a_stop_with_a_time_limit_drover_exits_by_itself_and_the_queue_can_be_restored(
    fleet: RealFleet,
) -> None:
    """Guard: a draining scheduler admits no work, cleared work is marked, and `up` drains. If work
    were admitted, the second run would start when the first ends; if it were deleted, it could not
    be restored; if `up` did not drain, the stack would stay until a second stop."""
    add_agent(fleet, "stopped", WHEN_TOLD)
    fleet.enqueue("stopped", 3)
    fleet.wait_until_running("stopped")
    pids = all_processes(fleet)

    late = fleet.stack.manage("stop", "--timeout", "1")
    assert late.returncode == 1
    assert "after 1 s 1 run is still running" in late.stderr
    assert fleet.scheduler_state() == "draining"
    assert fleet.work("stopped") == ["admitted", "cleared", "cleared"]
    assert gateway_answers(fleet)

    asked = fleet.stack.manage("run", "stopped")
    assert "queued: the scheduler is draining" in asked.stdout
    fleet.let_finish("stopped")
    assert exit_status(fleet) == 0
    wait_for(lambda: all_gone(pids), 5, "the stack is still there")
    assert fleet.scheduler_state() == "stopped"
    assert fleet.states("stopped") == ["succeeded"]
    assert fleet.work("stopped") == ["done", "cleared", "cleared", "queued"]

    done = fleet.stack.manage("stop")
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert fleet.work("stopped") == ["done", "cleared", "cleared", "cleared"]
    assert fleet.stack.manage_json("queue", "restore") == {"restored": 3}
    fleet.stack.up()
    fleet.wait_for_states("stopped", *["succeeded"] * 4)
    assert fleet.work("stopped") == ["done"] * 4
