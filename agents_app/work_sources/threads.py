"""The system duty that serves work sources: each on a thread of its own, so that none waits."""

import threading
from collections.abc import Callable
from datetime import datetime

import structlog
from django.db import DatabaseError, connection

from agents_app.work_sources import claims
from agents_app.work_sources.poll import serve_source
from agents_app.work_sources.wake import wake_schedules

log = structlog.get_logger("drover.work_sources")
MOST_THREADS = 16


class SourceThreads:
    """Serves each source on one thread at a time; further sources wait for the next round.

    The threads do not keep the process alive: rows say what is left to do.
    """

    def __init__(self, serve: Callable[[int], None]) -> None:
        self.serve = serve
        self.lock = threading.Lock()
        self.served: set[int] = set()

    def submit(self, source_id: int) -> bool:
        with self.lock:
            if source_id in self.served or len(self.served) >= MOST_THREADS:
                return False
            self.served.add(source_id)
        name = f"work-source-{source_id}"
        threading.Thread(target=self._perform, args=(source_id,), name=name, daemon=True).start()
        return True

    def _perform(self, source_id: int) -> None:
        try:
            self.serve(source_id)
        except DatabaseError as error:
            log.warning("work_source.database_unreachable", error=str(error))
        except Exception:
            log.exception("work_source.crashed", source_id=source_id)
        finally:
            connection.close()
            with self.lock:
                self.served.discard(source_id)


_THREADS = SourceThreads(serve_source)


def serve_work_sources(now: datetime) -> None:
    """Begin to serve the sources that have firings or claims; called by beat."""
    wake_schedules(now)
    for source_id in sorted(claims.sources_with_work(now)):
        _THREADS.submit(source_id)
