"""A run prints 300 MB while clients follow it and another run.

The gigabyte of F33 is printed in tests/agents_app/runners, without the costs of a whole stack."""

import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.faults.conftest import NewFleet
from tests.faults.real_fleet import RealFleet, moment
from tests.gateway_app.streams.client import Event, Stream, listen
from tests.parts.waiting import wait_for

PRINTED_BYTES = 300_000_000
MOST_MEMORY = 100_000_000
# Output is stored every half second, and read by the gateway as often.
LAG_SECONDS = 5.0
LINE = "x" * 999
PRINTS_A_LOT = f"yes {LINE} | head -c {PRINTED_BYTES}; echo the end of it"
TELLS_THE_TIME = 'until [ -e "$NOTES.go" ]; do date +%s.%N; sleep 0.1; done'


@pytest.fixture(scope="module")
def fleet(new_fleet: NewFleet) -> RealFleet:
    fleet = new_fleet()
    fleet.agent("loud", PRINTS_A_LOT)
    fleet.agent("clock", TELLS_THE_TIME)
    fleet.sync()
    fleet.ensure("redis", "worker-1", "gateway")
    return fleet


class Follower:
    """Reads the stream of a run on a thread, and notes when each event came."""

    def __init__(self, fleet: RealFleet, token: str, run_id: int) -> None:
        path = f"/v1/runs/{run_id}/logs/stream"
        self.stream: Stream = listen(fleet.stack.conf.port, token, path, timeout=60)
        self.came: list[tuple[float, Event]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for event in self._events():
            self.came.append((time.time(), event))

    def _events(self) -> Iterator[Event]:
        return self.stream.events()

    def wait(self) -> "Follower":
        self._thread.join(60)
        assert not self._thread.is_alive(), "the stream has not ended"
        self.stream.close()
        return self


@pytest.mark.timeout(180)
@pytest.mark.fault("F33")
def test_the_streams_of_a_huge_output_and_of_another_run_are_not_late(fleet: RealFleet) -> None:
    """Guard: head and tail of an output are stored, with one marker for the rest, and streams read
    what is stored. If all of it were stored, the streams would be minutes late; if the worker kept
    what it has read, it would grow by all of it."""
    done = fleet.stack.manage("token", "create", "reader", "--scope", "read")
    token = done.stdout.strip()
    fleet.enqueue("clock")
    fleet.wait_until_running("clock")
    worker = psutil.Process(fleet.latest_worker()["pid"])
    before = peak = worker.memory_info().rss
    clock = Follower(fleet, token, fleet.runs("clock")[0]["id"])
    fleet.enqueue("loud")
    loud = Follower(fleet, token, fleet.runs("loud")[0]["id"])
    until = time.monotonic() + 120
    while fleet.states("loud") != ["succeeded"] and time.monotonic() < until:
        peak = max(peak, worker.memory_info().rss)
        time.sleep(0.05)
    (run,) = fleet.wait_for_states("loud", "succeeded")
    assert peak - before < MOST_MEMORY

    lines = [event.data["text"] for _, event in loud.wait().came if event.name == "line"]
    assert lines[0] == LINE and lines[-1] == "the end of it"
    assert 10_900 < lines.count(LINE) < 11_100
    ended_at, end = loud.came[-1]
    assert end.name == "end"
    assert ended_at - moment(run["finished_at"]).timestamp() < LAG_SECONDS

    printed = [(came, event) for came, event in clock.came if event.name == "line"]
    began = moment(run["started_at"]).timestamp()
    late = [came - float(event.data["text"]) for came, event in printed if came > began]
    assert len(late) > 10 and max(late) < LAG_SECONDS, max(late)
    fleet.let_finish("clock")
    clock.wait()
    wait_for(lambda: fleet.states("clock") == ["succeeded"], 20)
