"""A Celery worker becomes a Drover worker: it holds a lease and follows the agents' queues."""

import os
import time
from typing import Any

import structlog
from celery import Celery, bootsteps, signals
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from django.db import DatabaseError, close_old_connections

from agents_app.models import Agent, queue_name
from agents_app.worker import Adopter, remove_leftover_workdirs, take_lease

log = structlog.get_logger("drover.worker")
FOLLOW_EVERY_SECONDS = 1.0
WARN_EVERY_SECONDS = 10.0


def install(app: Celery) -> None:
    """Called once, in worker processes only."""
    app.steps["consumer"].add(FollowQueues)
    signals.worker_init.connect(_begin, weak=False)


def _begin(sender: Any, **_: Any) -> None:
    """Celery would only log what goes wrong here, and a worker without a lease can run nothing."""
    try:
        _take_up_work(sender)
    except Exception:
        log.exception("worker.not_started")
        os._exit(1)


def _take_up_work(sender: Any) -> None:
    remove_leftover_workdirs()
    lease = take_lease(sender.hostname, sender.concurrency)
    signals.worker_shutting_down.connect(lambda **_: lease.drain(), weak=False)
    adopter = Adopter(lease.host)

    def end(**_: Any) -> None:
        adopter.end()
        lease.end()

    signals.worker_shutdown.connect(end, weak=False)
    log.info("worker.started", worker_id=lease.host.worker_id, worker=sender.hostname)


class DroverConsumer(Consumer):
    """Looks for Redis every second while it is away; Celery's own would wait half a minute."""

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
    """Consumes the queue of every agent there is; the database says which, not a broadcast."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        self._follow(consumer)
        if consumer.hub is not None:
            consumer.hub.call_repeatedly(FOLLOW_EVERY_SECONDS, self._follow, consumer)

    def _follow(self, consumer: Any) -> None:
        try:
            wanted = {queue_name(pk) for pk in Agent.objects.values_list("pk", flat=True)}
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
