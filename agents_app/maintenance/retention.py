"""Old rows go, in small bites, so that nobody waits for the database meanwhile."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import QuerySet

from agents_app.database import in_transaction
from agents_app.models import (
    Delivery,
    Firing,
    Heartbeat,
    LoginFailure,
    MachineSnapshot,
    Message,
    RunEvent,
    Tenant,
    Usage,
    Worker,
    WorkItem,
)

log = structlog.get_logger("drover.retention")
ROWS_IN_ONE_BITE = 500
DEFAULT_RUN_DAYS = 14
HEARTBEAT_DAYS, SNAPSHOT_DAYS, WORKER_DAYS, DELIVERY_DAYS = 7, 30, 30, 30
LOGIN_FAILURE_DAYS = 1
# One row an agent and day: a year of them can be compared with the year before.
USAGE_DAYS = 2 * 366


Tell = Callable[[int], None]


def remove_old_rows(now: datetime, tell: Tell = lambda _removed: None) -> int:
    """How many rows went; `tell` hears how many so far."""
    removed = 0
    for rows in old_rows(now):
        for bite in _bites(rows):
            removed += bite
            tell(removed)
    if removed:
        log.info("retention.removed", rows=removed)
    return removed


def old_rows(now: datetime) -> Iterator[QuerySet[Any]]:
    for tenant in Tenant.objects.all():
        yield from _of_tenant(tenant, now)
    yield Heartbeat.objects.filter(at__lt=now - timedelta(days=HEARTBEAT_DAYS))
    yield MachineSnapshot.objects.filter(at__lt=now - timedelta(days=SNAPSHOT_DAYS))
    yield Worker.objects.filter(ended_at__lt=now - timedelta(days=WORKER_DAYS))
    yield Delivery.objects.filter(received_at__lt=now - timedelta(days=DELIVERY_DAYS))
    yield LoginFailure.objects.filter(at__lt=now - timedelta(days=LOGIN_FAILURE_DAYS))
    yield Usage.objects.filter(day__lt=(now - timedelta(days=USAGE_DAYS)).date())


def _of_tenant(tenant: Tenant, now: datetime) -> Iterator[QuerySet[Any]]:
    """A work item takes its runs, their output and their events along."""
    days = tenant.settings.get("history_retention_days", DEFAULT_RUN_DAYS)
    before = now - timedelta(days=days)
    yield WorkItem.objects.filter(tenant=tenant, finished_at__lt=before)
    yield Firing.objects.filter(tenant=tenant, recorded_at__lt=before).exclude(outcome="")
    yield RunEvent.objects.filter(tenant=tenant, run__isnull=True, at__lt=before)
    yield Message.objects.filter(tenant=tenant, created_at__lt=before, read_at__lt=before)


def _bites(rows: QuerySet[Any]) -> Iterator[int]:
    while keys := list(rows.values_list("pk", flat=True)[:ROWS_IN_ONE_BITE]):
        # Django reads the rows that others refer to: only their keys, not bodies and prompts.
        bite = rows.model._default_manager.filter(pk__in=keys).only("pk")
        in_transaction(bite.delete)
        yield len(keys)
