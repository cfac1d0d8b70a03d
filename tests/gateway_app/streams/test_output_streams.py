"""/v1/runs/{id}/logs/stream on a real server: lines of a run while it runs, and its end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agents_app.output.numbering import Numbering
from tests.gateway_app.streams.client import Event, Stream
from tests.gateway_app.streams.conftest import Gateway, NewGateway

pytestmark = pytest.mark.slow

# Running runs of a worker that does not exist: a test decides what they print and when they end.
SETTLE = """
from datetime import UTC, datetime
from agents_app.runs import dispatch, lifecycle
from agents_app.database.transactions import in_transaction
from agents_app.runs.dispatch import Request
from agents_app.models import Agent, Run, Trigger, Worker
now = datetime.now(UTC)
Agent.objects.update(scale=100)
agent = Agent.objects.get(name="hello")
worker = Worker.objects.create(name="w", host="h", boot_id="b", pid=1, pid_started=0,
    concurrency=1, started_at=now, lease_until=now)
for _ in range(7):
    item = dispatch.enqueue(Request(agent.tenant_id, agent.pk, Trigger.MANUAL), now)
    run = Run.objects.get(work_item=item)
    in_transaction(lambda: lifecycle.start_run(run.pk, worker.pk, now))
    print(run.pk)
"""


class RunningRun:
    def __init__(self, gateway: Gateway, number: int) -> None:
        self.gateway = gateway
        self.id = number
        self.path = f"/v1/runs/{self.id}/logs/stream"
        self.seq = 0
        self.numbering = Numbering()

    def prints(self, data: bytes, stream: int = 1) -> None:
        self.seq += 1
        sql = (
            "INSERT INTO drover_run_output "
            "(tenant_id, run_id, seq, stream, at, data, first_line, carried) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        values = [self.gateway.tenants["default"], self.id, self.seq, stream, self.now, data]
        self.gateway.stack.rows(sql, *values, self.numbering.count, self.numbering.carried)
        self.numbering.feed(self.seq, stream, data)

    def ends(self, state: str = "succeeded") -> None:
        sql = "UPDATE drover_run SET state = ?, slot = NULL, exit_code = 0, finished_at = ?"
        self.gateway.stack.rows(f"{sql} WHERE id = ?", state, self.now, self.id)

    @property
    def now(self) -> Any:
        now = datetime.now(UTC)
        on_sqlite = self.gateway.stack.database_url.startswith("sqlite")
        return now.isoformat(" ")[:-6] if on_sqlite else now

    def follow(self, **options: Any) -> Stream:
        return self.gateway.listen(self.path, **options)


def running(gateway: Gateway) -> list[RunningRun]:
    numbers = gateway.made("shell", "--no-imports", "-c", SETTLE).split()
    return [RunningRun(gateway, int(number)) for number in numbers]


@pytest.fixture(scope="module")
def runs(gateway: Gateway) -> list[RunningRun]:
    return running(gateway)


@pytest.fixture
def run(runs: list[RunningRun]) -> RunningRun:
    """A run that no other test has used."""
    return runs.pop()


def texts(events: list[Event]) -> list[str]:
    return [event.data["text"] for event in events]


def test_lines_come_as_they_are_printed_and_then_the_end(run: RunningRun):
    run.prints(b"before\n")
    with run.follow() as stream:
        (first,) = stream.take(1)
        assert (first.name, first.id) == ("line", 0)
        assert first.data["number"] == 0
        assert (first.data["stream"], first.data["text"]) == ("stdout", "before")
        run.prints(b"half")
        run.prints(b"oops\n", stream=2)
        assert texts(stream.take(1)) == ["oops"]
        run.prints(b" a line\nthe \xe2\x82")
        assert texts(stream.take(1)) == ["half a line"]
        run.prints(b"\xac rest")
        run.ends("failed")
        *lines, end = stream.events()
    assert [(line.id, line.data["text"]) for line in lines] == [(3, "the \N{EURO SIGN} rest")]
    assert (end.name, end.data["run_id"], end.data["state"]) == ("end", run.id, "failed")
    assert end.data["completed_at"] is not None


def test_a_client_that_resumes_gets_the_next_line(run: RunningRun):
    run.prints(b"".join(b"line %d\n" % number for number in range(5)))
    with run.follow() as stream:
        assert texts(stream.take(3)) == ["line 0", "line 1", "line 2"]
        seen = stream.last_id
    run.ends()
    with run.follow(after=seen) as stream:
        *lines, _ = stream.events()
    assert texts(lines) == ["line 3", "line 4"]
    with Stream(run.gateway.port, run.gateway.token, f"{run.path}?last_event_id=4") as stream:
        assert [event.name for event in stream.events()] == ["open", "end"]


def test_a_styled_stream_has_colours_and_open_lines(run: RunningRun):
    run.prints(b"before\n\x1b[31mred")
    path = f"{run.path}?styled=true"
    with Stream(run.gateway.port, run.gateway.token, f"{path}&last_event_id=0") as stream:
        _, growing = stream.take(2)
        assert (growing.id, growing.data["number"], growing.data["open"]) == (None, 1, True)
        assert growing.data["spans"] == [{"text": "red", "look": "dv-fg-1"}]
        run.prints(b" \x1b[0mand\n10%\r20%\r")
        whole, bar = stream.take(2)
        assert (whole.id, whole.data["open"]) == (1, False)
        assert [span["text"] for span in whole.data["spans"]] == ["red ", "and"]
        assert bar.data["spans"] == [{"text": "20%"}]
        run.ends()
        last, end = stream.events()
        # A progress bar has the number of its last line: 10% is line 2.
        assert (last.id, last.data["open"], end.name) == (3, False, "end")


def test_the_stream_of_a_silent_run_has_heartbeats(run: RunningRun):
    with run.follow() as stream:
        lines = stream.lines()
        assert [next(lines) for _ in range(4)] == [": heartbeat", "", ": heartbeat", ""]


def test_a_long_output_comes_whole_however_slowly_it_is_read(run: RunningRun):
    for number in range(100):
        run.prints(b"%03d %s\n" % (number, b"x" * 60_000))
    run.ends()
    with run.follow() as stream:
        *lines, end = stream.events()
    assert [int(text[:3]) for text in texts(lines)] == list(range(100))
    assert end.name == "end"


def test_the_stream_of_a_removed_run_ends_with_an_error(run: RunningRun):
    with run.follow() as stream:
        run.gateway.stack.rows("DELETE FROM drover_run_event WHERE run_id = ?", run.id)
        run.gateway.stack.rows("DELETE FROM drover_run WHERE id = ?", run.id)
        (error,) = stream.events()
    expected = {"error": "there is no such run", "error_code": "not_found"}
    assert error == Event("error", expected)


@pytest.mark.fault("F72")
def test_a_run_of_another_tenant_is_answered_like_an_unknown_run(run: RunningRun):
    answers = []
    for number in (run.id, 987654):
        path = f"/v1/runs/{number}/logs/stream"
        with Stream(run.gateway.port, run.gateway.theirs, path) as stream:
            answers.append((stream.status, stream.problem()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


def test_the_server_stops_at_once_with_streams_open_and_each_has_a_proper_end(
    new_gateway: NewGateway,
):
    gateway = new_gateway()
    run, *_ = running(gateway)
    streams = [gateway.listen() for _ in range(40)] + [run.follow() for _ in range(10)]
    process = gateway.stack.processes.pop("gateway")
    process.terminate()
    # Well below the five seconds that uvicorn would wait before it cuts them off.
    process.wait(3)
    for stream in streams:
        # A stream that was cut off in the middle would raise IncompleteRead.
        assert list(stream.events()) == []
        stream.close()
    log = gateway.stack.log("gateway")
    assert "Traceback" not in log and "ASGI" not in log, log
