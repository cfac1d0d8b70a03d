"""Performs a duty for each tenant on a few threads, so that a slow tenant delays no other."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import structlog
from django.db import DatabaseError, connection

log = structlog.get_logger("drover.beat")
THREADS = 4


class TenantTurns:
    """Work of one tenant never overlaps itself: while it runs, further turns are left out."""

    def __init__(self, perform: Callable[[str, datetime], object], threads: int = THREADS) -> None:
        self.perform = perform
        self.pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="tenant")
        self.lock = threading.Lock()
        self.running: set[str] = set()

    def submit(self, tenant_name: str, now: datetime) -> bool:
        """False if the last turn of the tenant has not ended."""
        with self.lock:
            if tenant_name in self.running:
                return False
            self.running.add(tenant_name)
        self.pool.submit(self._turn, tenant_name, now)
        return True

    def _turn(self, tenant_name: str, now: datetime) -> None:
        try:
            self.perform(tenant_name, now)
        except DatabaseError as error:
            log.warning("tenant.database_unreachable", tenant=tenant_name, error=str(error))
        except Exception:
            log.exception("tenant.turn_failed", tenant=tenant_name)
        finally:
            connection.close()
            with self.lock:
                self.running.discard(tenant_name)
