"""Makes a Celery worker a Drover worker: it holds a lease and consumes the queues of agents."""

import os
import time
from typing import Any

import structlog
from celery import Celery, bootsteps, signals
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from django.db import DatabaseError, close_old_connections

from agents_app.database import schema_problem
from agents_app.models import Agent, queue_name
from agents_app.worker import (
    Adopter,
    ConsumerWatch,
    current_host,
    remove_leftover_workdirs,
    take_lease,
)

log = structlog.get_logger("drover.worker")
FOLLOW_EVERY_SECONDS = 1.0
WARN_EVERY_SECONDS = 10.0


def install(app: Celery) -> None:
    """Called once in each worker process."""
    app.steps["consumer"].add(FollowQueues)
    signals.worker_init.connect(_start, weak=False)


def _start(sender: Any, **_: Any) -> None:
    """Exits on an error: Celery would only log the error, and a worker requires a lease."""
    try:
        _take_lease(sender)
    except Exception:
        log.exception("worker.not_started")
        os._exit(1)


def _wait_for_schema() -> None:
    """Wait while the schema differs: the tables may lack columns that the code uses, and a worker
    that exits would be started again and again."""
    told = ""
    while problem := schema_problem():
        if problem != told:
            log.error("schema.differs", problem=problem)
            told = problem
        close_old_connections()
        maybe_shutdown()  # Celery records a signal and looks at it in its own loop only
        time.sleep(FOLLOW_EVERY_SECONDS)


def _take_lease(sender: Any) -> None:
    _wait_for_schema()
    remove_leftover_workdirs()
    lease = take_lease(sender.hostname, sender.concurrency)
    signals.worker_shutting_down.connect(lambda **_: lease.drain(), weak=False)
    adopter = Adopter(lease.host)
    ConsumerWatch(lease.host, sender.concurrency).start()

    def end(**_: Any) -> None:
        adopter.end()
        lease.end()

    signals.worker_shutdown.connect(end, weak=False)
    log.info("worker.started", worker_id=lease.host.worker_id, worker=sender.hostname)


class DroverConsumer(Consumer):
    """Reconnects to Redis every second; Celery would wait up to half a minute."""

    def ensure_connected(self, conn: Any) -> Any:
        return conn.ensure_connection(
            self._unreachable,
            interval_start=0.5,
            interval_step=0.5,
            interval_max=1.0,
            callback=maybe_shutdown,
        )

    def _unreachable(self, error: Exception, _seconds: float) -> None:
        if time.monotonic() - self._warned_at >= WARN_EVERY_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("worker.redis_unreachable", error=str(error))

    _warned_at = -WARN_EVERY_SECONDS


class FollowQueues(bootsteps.StartStopStep):
    """Consumes the queue of every agent, read from the database every second."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        self._follow(consumer)
        if consumer.hub is not None:
            consumer.hub.call_repeatedly(FOLLOW_EVERY_SECONDS, self._follow, consumer)

    def _follow(self, consumer: Any) -> None:
        try:
            # A draining worker leaves the messages to other workers.
            draining = current_host().draining.is_set()
            agents = Agent.objects.none() if draining else Agent.objects.all()
            wanted = {queue_name(pk) for pk in agents.values_list("pk", flat=True)}
        except DatabaseError as error:
            log.warning("worker.queues_unknown", error=str(error))
            close_old_connections()
            return
        consumed = set(consumer.task_consumer._queues)
        for queue in wanted - consumed:
            consumer.add_task_queue(queue)
        for queue in consumed - wanted:
            if queue.startswith("agent."):
                consumer.cancel_task_queue(queue)
