"""The worker process of a scheduler: executes the runs whose ids arrive on standard input.

It ends when the input has ended and its last run has finished, so runs outlive the program that
started the scheduler.
"""

import signal
import sys
from types import FrameType

from agents_app.events import relay
from agents_app.scheduler.hinted_runs import HintedRuns
from agents_app.worker import Adopter, remove_leftover_workdirs, take_lease


class DrainRequested(Exception):
    """SIGTERM: the process starts no further run."""


def serve_worker(name: str, threads: int) -> None:
    remove_leftover_workdirs()
    lease = take_lease(name, threads)
    adopter = Adopter(lease.host)
    runs = HintedRuns(lease.host, threads)
    relay.use_transport(runs)
    signal.signal(signal.SIGTERM, _request_drain)
    try:
        for line in sys.stdin:
            run_id, queue = line.split()
            runs.publish(int(run_id), queue)
    except DrainRequested:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        runs.drain()
        runs.wait()
        adopter.end()
        lease.end()


def _request_drain(_number: int, _frame: FrameType | None) -> None:
    raise DrainRequested
