"""Deletion of old rows, in small transactions, so that other writers wait only briefly."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db.models import QuerySet

from agents_app.database import ENGINE, in_transaction
from agents_app.models import (
    DEFAULT_TENANT,
    Delivery,
    Firing,
    Heartbeat,
    LoginFailure,
    MachineSnapshot,
    Message,
    RunEvent,
    Tenant,
    Usage,
    WorkClaim,
    Worker,
    WorkItem,
)

log = structlog.get_logger("drover.retention")
ROWS_IN_ONE_COMMIT = 500
DEFAULT_RUN_DAYS = 14
HEARTBEAT_DAYS, SNAPSHOT_DAYS, WORKER_DAYS, DELIVERY_DAYS = 7, 30, 30, 30
LOGIN_FAILURE_DAYS = 1
# One row per agent and day: a year can be compared with the year before.
USAGE_DAYS = 2 * 366

OnProgress = Callable[[int], None]


def remove_old_rows(now: datetime, on_progress: OnProgress = lambda _removed: None) -> int:
    """The number of deleted rows; `on_progress` is called with the number so far."""
    removed = 0
    groups = [_delete_group(_old_rows_of_tenant(*each, now)) for each in _tenants_with_days()]
    for deleted in _in_turns([*groups, _delete_group(_old_rows_of_installation(now))]):
        removed += deleted
        on_progress(removed)
    if removed:
        log.info("retention.removed", rows=removed)
    return removed


def remove_old_rows_and_free_space(now: datetime) -> int:
    """The hourly duty: after the rows are gone, a step of returning their space."""
    removed = remove_old_rows(now)
    ENGINE.return_free_space()
    return removed


def old_rows(now: datetime) -> Iterator[QuerySet[Any]]:
    for tenant, days in _tenants_with_days():
        yield from _old_rows_of_tenant(tenant, days, now)
    yield from _old_rows_of_installation(now)


def _tenants_with_days() -> list[tuple[Tenant, int]]:
    """Each tenant with its retention; one that sets none has that of the default tenant."""
    tenants = list(Tenant.objects.order_by("pk"))
    own = {tenant.name: tenant.settings.get("history_retention_days") for tenant in tenants}
    inherited = own.get(DEFAULT_TENANT) or DEFAULT_RUN_DAYS
    return [(tenant, own[tenant.name] or inherited) for tenant in tenants]


def _old_rows_of_installation(now: datetime) -> Iterator[QuerySet[Any]]:
    yield Heartbeat.objects.filter(at__lt=now - timedelta(days=HEARTBEAT_DAYS))
    yield MachineSnapshot.objects.filter(at__lt=now - timedelta(days=SNAPSHOT_DAYS))
    yield Worker.objects.filter(ended_at__lt=now - timedelta(days=WORKER_DAYS))
    yield Delivery.objects.filter(received_at__lt=now - timedelta(days=DELIVERY_DAYS))
    yield LoginFailure.objects.filter(at__lt=now - timedelta(days=LOGIN_FAILURE_DAYS))
    yield Usage.objects.filter(day__lt=(now - timedelta(days=USAGE_DAYS)).date())


def _old_rows_of_tenant(tenant: Tenant, days: int, now: datetime) -> Iterator[QuerySet[Any]]:
    """Runs, their output and their events are deleted with their work item."""
    before = now - timedelta(days=days)
    yield WorkItem.objects.filter(tenant=tenant, finished_at__lt=before)
    yield Firing.objects.filter(tenant=tenant, recorded_at__lt=before).exclude(
        outcome__in=["", Firing.Outcome.POLLING]
    )
    yield WorkClaim.objects.filter(tenant=tenant, ended_at__lt=before)
    yield RunEvent.objects.filter(tenant=tenant, run__isnull=True, at__lt=before)
    yield Message.objects.filter(tenant=tenant, created_at__lt=before, read_at__lt=before)


def _in_turns(groups: list[Iterator[int]]) -> Iterator[int]:
    """One batch of each group after the other: many old rows of a tenant do not delay others."""
    while groups:
        for group in list(groups):
            deleted = next(group, None)
            if deleted is None:
                groups.remove(group)
            else:
                yield deleted


def _delete_group(tables: Iterator[QuerySet[Any]]) -> Iterator[int]:
    for rows in tables:
        yield from _delete_in_batches(rows)


def _delete_in_batches(rows: QuerySet[Any]) -> Iterator[int]:
    while keys := list(rows.values_list("pk", flat=True)[:ROWS_IN_ONE_COMMIT]):
        # Django reads rows that are referenced before it deletes them: only keys, no long columns.
        batch = rows.model._default_manager.filter(pk__in=keys).only("pk")
        in_transaction(batch.delete)
        yield len(keys)
