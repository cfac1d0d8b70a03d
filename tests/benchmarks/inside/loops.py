"""Two loops on one thread, for tuning: whole runs of Drover, and plain subprocesses."""

import os
import subprocess
import time

from agents_app.events import relay
from agents_app.models import Agent, Run, Tenant
from agents_app.runs import dispatch
from agents_app.worker import execute
from agents_app.worker.lease import Lease, utc_now
from tests.benchmarks.inside.fleet import write_work

COMMAND = ["/bin/true"]


def drover(runs: int) -> dict[str, float]:
    write_work(agents=1, scale=1, command=COMMAND, items=runs)
    Tenant.objects.update(paused_at=None)
    # One slot that is handed over: only the path of a run is measured.
    execute.MAX_RUNS_IN_A_ROW, execute.MAX_SECONDS_IN_A_ROW = runs + 1, 1e9
    relay.hint = lambda *_: None
    lease = Lease("loop", 1)
    dispatch.admit_waiting(Agent.objects.get().pk, utc_now())
    before = _spent()
    done = execute.execute(Run.objects.get().pk, lease.host)
    numbers = _per_run(before, runs)
    lease.end()
    assert done == runs, f"{done} of {runs}"
    return numbers


def bare(runs: int) -> dict[str, float]:
    before = _spent()
    for _ in range(runs):
        subprocess.run(COMMAND, check=True)
    return _per_run(before, runs)


def _spent() -> tuple[float, float, float]:
    times = os.times()
    own, children = times.user + times.system, times.children_user + times.children_system
    return own, children, time.perf_counter()


def _per_run(before: tuple[float, float, float], runs: int) -> dict[str, float]:
    spent = [(b - a) / runs * 1000 for a, b in zip(before, _spent(), strict=True)]
    return dict(zip(("own_ms", "children_ms", "wall_ms"), spent, strict=True))
