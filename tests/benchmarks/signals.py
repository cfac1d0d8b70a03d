"""Status signals of running agents over HTTP: how many a second, and how slow the slowest are.

The peer is a plain Django view on the same server that saves one row a request. A signal's token
is checked as well; both commit with fsync before they answer.
"""

import json
import shutil
import subprocess

from tests.benchmarks.bed import DATABASES, Bed, Numbers, inside, medians
from tests.benchmarks.table import Row
from tests.faults.hooks import BODY
from tests.parts.missing import missing
from tests.parts.stack_part import PrivateStack

CONNECTIONS, SECONDS = 20, 8
_DONE = """
function done(summary, latency)
  io.write(string.format('\\n{"seconds": %f, "requests": %d, "failed": %d, "p99": %f}\\n',
    summary.duration / 1e6, summary.requests,
    summary.errors.status + summary.errors.timeout + summary.errors.read + summary.errors.connect,
    latency:percentile(99) / 1000))
end
"""
_SIGNAL = """
local tokens, number = {%s}, 0
function request()
  number = number + 1
  local headers = {["content-type"] = "application/json",
    ["authorization"] = "Bearer " .. tokens[number %% #tokens + 1]}
  return wrk.format("POST", "/v1/signals/status", headers, '{"text": "step ' .. number .. '"}')
end
"""
_HOOK = """
local number = 0
function request()
  number = number + 1
  local headers = {["x-github-event"] = "issues", ["x-github-delivery"] = "bench-" .. number}
  return wrk.format("POST", "/webhooks/github", headers, [==[%s]==])
end
"""


def measure(bed: Bed) -> list[Row]:
    subjects = {f"peer on {on}": lambda on=on: _peer(bed, on) for on in DATABASES}  # type: ignore[misc]
    subjects |= {on: lambda on=on: _signals(bed, on) for on in DATABASES}  # type: ignore[misc]
    found = medians(bed.rounds, subjects)
    return [row for on in DATABASES for row in _rows(on, found[on], found[f"peer on {on}"])]


def _rows(on: str, mine: Numbers, peer: Numbers) -> list[Row]:
    what = f"status signals at {CONNECTIONS} connections"
    return [
        Row(
            what=f"{what}: answered",
            on=on,
            drover=mine["per_second"],
            peer=peer["per_second"],
            unit="/s",
            at_least_of_peer=1.0,
        ),
        Row(what=f"{what}: p99", on=on, drover=mine["p99"], peer=peer["p99"], unit="ms"),
    ]


def _signals(bed: Bed, on: str) -> Numbers:
    with bed.drover(on) as stack:
        tokens = inside(stack, "signals:write", runs=CONNECTIONS)
        stack.start("gateway")
        return _load(stack, _SIGNAL % ", ".join(f'"{token}"' for token in tokens))


def _peer(bed: Bed, on: str) -> Numbers:
    with bed.peer(on) as stack:
        inside(stack, "hooks:make_table")
        stack.start("gateway")
        return _load(stack, _HOOK % BODY.decode())


def _load(stack: PrivateStack, script: str) -> Numbers:
    if not shutil.which("wrk"):
        missing("wrk", "apt install wrk")
    path = stack.data / "signals.lua"
    path.write_text(script + _DONE)
    options = ("-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--timeout", "20s", "-s", str(path))
    done = subprocess.run(
        ["wrk", *options, stack.url], capture_output=True, text=True, timeout=60, check=True
    )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["failed"] == 0, done.stdout
    return {"per_second": told["requests"] / told["seconds"], "p99": told["p99"]}
