"""The Celery application of the peer: plain tasks, early acknowledgement, no database.

With DJANGO_SETTINGS_MODULE in the environment (the peer's beat) Celery itself loads Django."""

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery, signals

from agents_app.conf import CONF
from agents_app.installation.redis_server import redis_url
from agents_app.stack.ready import report_ready

app = Celery("peer", broker=redis_url(CONF))
app.conf.update(
    broker_transport_options={"global_keyprefix": CONF.redis_prefix},
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_default_queue="peer",
    timezone="UTC",
)
REPORT = Path(os.environ.get("PEER_REPORT", os.devnull))
EXPECTED = int(os.environ.get("PEER_EXPECTED", "0"))
_finished = itertools.count(1)
_began: dict[str, float] = {}


@app.task(name="peer.run_true")
def run_true() -> None:
    subprocess.run(["/bin/true"], check=False)
    # In memory, because a file would cost the peer time that a plain task does not need.
    if next(_finished) == EXPECTED:
        spent = {name: value - _began[name] for name, value in _spent().items()}
        REPORT.write_text(json.dumps(spent))


@app.task(name="peer.run_date")
def run_date(due_at: float) -> None:
    done = subprocess.run(["/bin/date", "+%s.%N"], capture_output=True, text=True, check=False)
    with REPORT.open("a") as report:
        report.write(f"{due_at} {done.stdout}")


@app.task(name="peer.noop")
def noop(*_: Any) -> None:
    """Never executed: only its messages are counted."""


def _ready(**_: Any) -> None:
    _began.update(_spent())
    report_ready()


def _spent() -> dict[str, float]:
    times = os.times()
    cpu = sum((times.user, times.system, times.children_user, times.children_system))
    return {"seconds": time.time(), "cpu_seconds": cpu}


signals.worker_ready.connect(_ready, weak=False)
signals.beat_init.connect(report_ready, weak=False)

if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        run_true.delay()
