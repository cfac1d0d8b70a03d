"""Sends hints to Redis on a thread of its own, so that no caller waits for Redis.

A hint names a run that a worker should start. A lost hint costs latency, never work: the sweep
sends it again.
"""

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from queue import Empty, Full, Queue
from typing import Protocol

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from agents_app.models import queue_name

log = structlog.get_logger("drover.relay")
MAX_WAITING = 50_000
WARN_EVERY_SECONDS = 10.0


class Relay:
    """The queue of hints of one process and the thread that sends them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._waiting: Queue[tuple[int, int]] = Queue(MAX_WAITING)
        self._warned_at = -WARN_EVERY_SECONDS
        self._lost = 0
        threading.Thread(target=self._work, name="relay", daemon=True).start()

    def put(self, run_id: int, agent_id: int) -> None:
        try:
            self._waiting.put_nowait((run_id, agent_id))
        except Full:
            self._lost += 1

    def drain(self, seconds: float) -> bool:
        """Wait until all hints are sent; False if some are left to the sweep."""
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
        """Drop all hints, which the sweep sends again: each attempt would block for seconds."""
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


class HintTransport(Protocol):
    """Carries hints to workers. `settings.DROVER_HINT_TRANSPORT` names the class."""

    def connect(self) -> None:
        """Open the connection that `publish` uses."""
        ...

    def publish(self, run_id: int, queue: str) -> None: ...

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        """Number of hints in each queue."""
        ...


class NoHints:
    """For a process without Redis that executes no runs: the sweep of the next start hints them."""

    def connect(self) -> None:
        """Nothing is to be connected."""

    def publish(self, run_id: int, queue: str) -> None:
        log.debug("relay.no_receiver", run_id=run_id, queue=queue)

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(queues, 0)


@cache
def _transport_of_settings() -> HintTransport:
    """Loaded at the first hint: to import Celery costs a tenth of a second."""
    transport: HintTransport = import_string(settings.DROVER_HINT_TRANSPORT)()
    return transport


_replacement: HintTransport | None = None


def use_transport(transport: HintTransport | None) -> None:
    """Send the hints of this process without Redis; None: with the transport of the settings."""
    global _replacement
    _replacement = transport


def _transport() -> HintTransport:
    return _replacement or _transport_of_settings()


def connect_early() -> None:
    """Connect in the background, so that the first hint of this process is not delayed."""
    threading.Thread(target=_connect, name="relay-connect", daemon=True).start()


def _connect() -> None:
    with suppress(Exception):
        _transport().connect()


def publish(run_id: int, agent_id: int) -> None:
    _transport().publish(run_id, queue_name(agent_id))


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
    """Number of hints in Redis for each agent; None if Redis does not answer."""
    queues = {agent_id: queue_name(agent_id) for agent_id in agent_ids}
    try:
        waiting = _transport().waiting(queues.values())
    except Exception:
        return None
    return {agent_id: waiting[queue] for agent_id, queue in queues.items()}
