"""Old rows go, in small bites, so that nobody waits for the database meanwhile."""

from datetime import datetime, timedelta

import structlog
from django.db.models import Model, QuerySet

from agents_app.commit import in_transaction
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


def retention(now: datetime) -> None:
    removed = sum(_of_tenant(tenant, now) for tenant in Tenant.objects.all())
    removed += _delete(Heartbeat.objects.filter(at__lt=now - timedelta(days=HEARTBEAT_DAYS)))
    removed += _delete(MachineSnapshot.objects.filter(at__lt=now - timedelta(days=SNAPSHOT_DAYS)))
    removed += _delete(Worker.objects.filter(ended_at__lt=now - timedelta(days=WORKER_DAYS)))
    removed += _delete(Delivery.objects.filter(received_at__lt=now - timedelta(days=DELIVERY_DAYS)))
    removed += _delete(LoginFailure.objects.filter(at__lt=now - timedelta(days=LOGIN_FAILURE_DAYS)))
    removed += _delete(Usage.objects.filter(day__lt=(now - timedelta(days=USAGE_DAYS)).date()))
    if removed:
        log.info("retention.removed", rows=removed)


def _of_tenant(tenant: Tenant, now: datetime) -> int:
    """A work item takes its runs, their output and their events along."""
    days = tenant.settings.get("history_retention_days", DEFAULT_RUN_DAYS)
    before = now - timedelta(days=days)
    return (
        _delete(WorkItem.objects.filter(tenant=tenant, finished_at__lt=before))
        + _delete(Firing.objects.filter(tenant=tenant, recorded_at__lt=before).exclude(outcome=""))
        + _delete(RunEvent.objects.filter(tenant=tenant, run__isnull=True, at__lt=before))
        + _delete(Message.objects.filter(tenant=tenant, created_at__lt=before, read_at__lt=before))
    )


def _delete(rows: QuerySet[Model]) -> int:
    removed = 0
    while keys := list(rows.values_list("pk", flat=True)[:ROWS_IN_ONE_BITE]):
        bite = rows.model._default_manager.filter(pk__in=keys)
        in_transaction(bite.delete)
        removed += len(keys)
    return removed
