"""Signed webhooks: how many are stored a second, and how soon after the answer an agent runs.

The peer is a plain Django view on the same server, uvicorn, that saves one row a request. Drover's
is checked, matched and becomes work of an agent as well; both commit with fsync before they answer.
"""

import asyncio
import json
import shutil
import subprocess
import time

from tests.benchmarks.bed import DATABASES, Bed, Numbers, inside, medians, percentile
from tests.benchmarks.looking import reader, time_reached
from tests.benchmarks.table import Row
from tests.faults.hooks import SECRET, numbered, read_answer, request, signature
from tests.parts.missing import missing
from tests.parts.stack_part import PrivateStack

CONNECTIONS, SECONDS = 50, 8
# Far more than are sent in so many seconds.
MOST_REQUESTS = 100_000
ANSWERS, APART_SECONDS = 100, 0.05
COMMAND = ["/bin/date", "+%s.%N"]
START_LIMITS = {50: 50.0, 99: 250.0}
_ENDED = "SELECT count(*) FROM drover_work_item WHERE finished_at IS NOT NULL"
_STORED = "SELECT count(*) FROM drover_delivery"
_STARTS = """
SELECT d.delivery_id, o.data FROM drover_delivery d
JOIN drover_work_item w ON w.idempotency_key = 'delivery:' || d.id || ':agent0'
JOIN drover_run r ON r.work_item_id = w.id JOIN drover_run_output o ON o.run_id = r.id"""
# A number per request, in id and body: a repeated delivery is a duplicate and costs less.
_SCRIPT = """
local number, signatures = 0, {}
for line in io.lines("%(signatures)s") do signatures[#signatures + 1] = line end
function request()
  number = number + 1
  local headers = {["content-type"] = "application/json", ["x-github-event"] = "issues",
    ["x-github-delivery"] = "%(prefix)s-" .. number, ["x-hub-signature-256"] = signatures[number]}
  local body = [==[%(before)s]==] .. "%(prefix)s-" .. number .. [==[%(after)s]==]
  return wrk.format("POST", "/webhooks/github", headers, body)
end
function done(summary, latency)
  io.write(string.format('\\n{"seconds": %%f, "requests": %%d, "failed": %%d, "p99": %%f}\\n',
    summary.duration / 1e6, summary.requests,
    summary.errors.status + summary.errors.timeout + summary.errors.read + summary.errors.connect,
    latency:percentile(99) / 1000))
end
"""


def measure(bed: Bed) -> list[Row]:
    subjects = {f"peer on {on}": lambda on=on: _peer(bed, on) for on in DATABASES}  # type: ignore[misc]
    subjects |= {on: lambda on=on: _accepted(bed, on) for on in DATABASES}  # type: ignore[misc]
    found = medians(bed.rounds, subjects)
    starts = {on: lambda on=on: _started(bed, on) for on in DATABASES}  # type: ignore[misc]
    started = medians(bed.rounds, starts)
    return [row for on in DATABASES for row in _rows(on, found, started)]


def _rows(on: str, found: dict[str, Numbers], started: dict[str, Numbers]) -> list[Row]:
    mine, peer = found[on], found[f"peer on {on}"]
    what = f"signed deliveries at {CONNECTIONS} connections"
    rate = Row(
        what=f"{what}: accepted",
        on=on,
        drover=mine["per_second"],
        peer=peer["per_second"],
        unit="/s",
        at_least_of_peer=3.0,
    )
    slowest = Row(
        what=f"{what}: p99", on=on, drover=mine["p99"], peer=peer["p99"], unit="ms", at_most=300.0
    )
    after = [
        Row(
            what=f"from the 2xx until the program runs, p{percent}",
            on=on,
            drover=started[on][f"p{percent}"],
            unit="ms",
            at_most=limit,
        )
        for percent, limit in START_LIMITS.items()
    ]
    return [rate, slowest, *after]


# --- throughput -----------------------------------------------------------------------------


def _accepted(bed: Bed, on: str) -> Numbers:
    with bed.drover(on, HOOK_SECRET=SECRET) as stack:
        inside(stack, "hooks:write", command=COMMAND, scale=4)
        stack.start("gateway")
        numbers = load(stack)
        with reader(stack) as read:
            # wrk does not count requests that were unanswered at the end.
            assert read(_STORED) >= numbers["requests"]
    return numbers


def _peer(bed: Bed, on: str) -> Numbers:
    with bed.peer(on) as stack:
        inside(stack, "hooks:make_table")
        stack.start("gateway")
        return load(stack)


def load(stack: PrivateStack, prefix: str = "bench") -> Numbers:
    if not shutil.which("wrk"):
        missing("wrk", "apt install wrk")
    script, signatures = stack.data / "load.lua", stack.data / "signatures"
    bodies = (numbered(f"{prefix}-{number}") for number in range(1, MOST_REQUESTS + 1))
    signatures.write_text("".join(f"{signature(body)}\n" for body in bodies))
    before, _, after = numbered("|").decode().partition("|")
    values = {"signatures": signatures, "before": before, "after": after, "prefix": prefix}
    script.write_text(_SCRIPT % values)
    argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "20s"]
    argv += ["-s", str(script), stack.url]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: Numbers = json.loads(done.stdout.splitlines()[-1])
    assert found["failed"] == 0, done.stdout
    return {**found, "per_second": found["requests"] / found["seconds"]}


# --- latency --------------------------------------------------------------------------------


def _started(bed: Bed, on: str) -> Numbers:
    """One delivery at a time on an idle machine; the program `date` prints when it ran."""
    with bed.drover(on, HOOK_SECRET=SECRET) as stack:
        inside(stack, "hooks:write", command=COMMAND, scale=8)
        for name in ("worker-1", "gateway"):
            stack.start(name)
        answered = asyncio.run(_send_slowly(stack.conf.port))
        with reader(stack) as read:
            time_reached(lambda: read(_ENDED), ANSWERS, every_seconds=0.5)
        started = {row["delivery_id"]: float(bytes(row["data"])) for row in stack.rows(_STARTS)}
    late = [(started[identity] - at) * 1000 for identity, at in answered.items()]
    return {f"p{percent}": percentile(late, percent) for percent in START_LIMITS}


async def _send_slowly(port: int) -> dict[str, float]:
    """The time of each answer; a program may run before that."""
    answered = {}
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(-5, ANSWERS):
        writer.write(request(f"slow-{number}"))
        status, _, _ = await read_answer(reader)
        assert status == 200
        if number >= 0:  # the first ones only warm it up
            answered[f"slow-{number}"] = time.time()
        await asyncio.sleep(APART_SECONDS)
    writer.close()
    return answered
