"""Hints leave here for Redis, on a thread of their own: no caller ever waits for Redis.

A hint says "look at this run". Losing one costs latency, never work: the sweep sends it again.
"""

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any

import structlog

log = structlog.get_logger("drover.relay")
MOST_WAITING = 50_000
WARN_EVERY_SECONDS = 10.0


class Relay:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: Queue[tuple[int, int]] = Queue(MOST_WAITING)
        self._warned_at = -WARN_EVERY_SECONDS
        self._lost = 0
        threading.Thread(target=self._work, name="relay", daemon=True).start()

    def put(self, run_id: int, agent_id: int) -> None:
        try:
            self._waiting.put_nowait((run_id, agent_id))
        except Full:
            self._lost += 1

    def drain(self, seconds: float) -> bool:
        """Before a short-lived process ends; False if some hints are left to the sweep."""
        until = time.monotonic() + seconds
        while self._waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.01)
        return not self._waiting.unfinished_tasks

    def _work(self) -> None:
        while True:
            run_id, agent_id = self._waiting.get()
            try:
                publish(run_id, agent_id)
            except Exception as error:
                self._give_up(error)
            finally:
                self._waiting.task_done()

    def _give_up(self, error: Exception) -> None:
        """While Redis is away each try would block for seconds: what waits goes to the sweep."""
        self._lost += 1
        while True:
            try:
                self._waiting.get_nowait()
            except Empty:
                break
            self._waiting.task_done()
            self._lost += 1
        if time.monotonic() - self._warned_at >= WARN_EVERY_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("relay.redis_unreachable", error=str(error), hints_left=self._lost)


def connect_early() -> None:
    """For a process whose first hint must not be a tenth of a second late."""
    threading.Thread(target=_connect, name="relay-connect", daemon=True).start()


def _connect() -> None:
    from scheduler_project.celery import app

    with suppress(Exception), app.producer_pool.acquire(block=True) as producer:
        assert producer.connection is not None
        producer.connection.ensure_connection(max_retries=1, timeout=2)
        producer.channel  # noqa: B018 - opens it


def publish(run_id: int, agent_id: int) -> None:
    from agents_app.models import queue_name
    from scheduler_project.celery import app

    app.send_task(
        "agents_app.tasks.execute_run", args=[run_id], queue=queue_name(agent_id), retry=False
    )


_current: Relay | None = None
_making = threading.Lock()


def hint(run_id: int, agent_id: int) -> None:
    _relay().put(run_id, agent_id)


def drain(seconds: float = 2.0) -> bool:
    return _current is None or _current.drain(seconds)


def _relay() -> Relay:
    global _current
    with _making:
        if _current is None or _current.pid != os.getpid():
            _current = Relay()
        return _current


def waiting_hints(agent_ids: Iterable[int]) -> dict[int, int] | None:
    """How many hints Redis holds for each agent; None if Redis cannot be asked."""
    from agents_app.models import queue_name
    from scheduler_project.celery import app

    try:
        with app.connection_for_write() as connection:
            client: Any = connection.default_channel.client  # type: ignore[attr-defined]
            return {agent_id: int(client.llen(queue_name(agent_id))) for agent_id in agent_ids}
    except Exception:
        return None
