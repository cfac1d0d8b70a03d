"""Executes hinted runs on threads of this process; replaces the queues of agents in Redis."""

import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait

import structlog
from django.db import close_old_connections

from agents_app.worker import Host, execute

log = structlog.get_logger("drover.scheduler")


class HintedRuns:
    """A transport of hints whose receiver is a pool of threads in the same process."""

    def __init__(self, host: Host, threads: int) -> None:
        self.host = host
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="run")
        self._lock = threading.Lock()
        # The queue of each run that waits for a thread: a repeated hint adds nothing.
        self._waiting: dict[int, str] = {}
        self._futures: set[Future[None]] = set()

    def connect(self) -> None:
        """Nothing is to be connected."""

    def publish(self, run_id: int, queue: str) -> None:
        with self._lock:
            if run_id in self._waiting or self.host.draining.is_set():
                return
            self._waiting[run_id] = queue
            future = self._pool.submit(self._execute, run_id)
            self._futures = {each for each in self._futures if not each.done()} | {future}

    def waiting(self, queues: Iterable[str]) -> dict[str, int]:
        with self._lock:
            counts = Counter(self._waiting.values())
        return {queue: counts[queue] for queue in queues}

    def drain(self) -> None:
        """Start no further run; running ones go on."""
        with self._lock:
            self.host.draining.set()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the runs; False if some are unfinished after the time."""
        with self._lock:
            futures = self._futures
        return not wait(futures, seconds).not_done

    def _execute(self, run_id: int) -> None:
        with self._lock:
            del self._waiting[run_id]
        try:
            execute.execute(run_id, self.host)
        except Exception:
            # The sweep finds the row, and hints it again or ends it.
            log.exception("run.not_executed", run_id=run_id)
        finally:
            close_old_connections()
