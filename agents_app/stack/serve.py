"""Starts a worker or a beat for `up`: `python -m agents_app.stack.serve worker NAME THREADS`.

Celery's own command line would load Flower, a shell and a dozen pages, and would not report to `up`
when it is ready.
"""

import sys
import warnings

from celery import signals
from celery.utils.nodenames import default_nodename, host_format

from agents_app.conf import CONF
from agents_app.installation import repair_permissions
from agents_app.stack.ready import report_ready
from scheduler_project.celery import app

BEAT = "scheduler_project.beat:DroverScheduler"


def worker(name: str, threads: str) -> int:
    # Root may run agents as other users; Celery's warning is about pickle, which is disabled.
    warnings.filterwarnings("ignore", "You're running the worker with superuser privileges")
    signals.worker_ready.connect(report_ready, weak=False)
    controller = app.Worker(
        hostname=host_format(default_nodename(f"{name}@%h")),
        pool_cls="threads",
        concurrency=int(threads),
        loglevel="INFO",
        task_events=True,
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    controller.start()
    return int(controller.exitcode or 0)


def beat() -> int:
    signals.beat_init.connect(report_ready, weak=False)
    app.Beat(scheduler=BEAT, loglevel="INFO", quiet=True).run()
    return 0


if __name__ == "__main__":
    repair_permissions(CONF)
    sys.exit(worker(*sys.argv[2:]) if sys.argv[1] == "worker" else beat())
