"""Webhook deliveries that wake the poll: schedules of a source fire now instead of later."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Q

from agents_app.database import in_transaction
from agents_app.models import Delivery, Schedule, WorkSource
from agents_app.work_sources import claims
from agents_app.work_sources.kinds import read_settings

MOST_DELIVERIES = 500


def wake_schedules(now: datetime) -> int:
    """Make the schedules due whose source has got a delivery; returns their number."""
    return sum(_wake_source(source, now) for source in WorkSource.objects.order_by("pk"))


def _wake_source(source: WorkSource, now: datetime) -> int:
    newer = Delivery.objects.filter(tenant=source.tenant_id, pk__gt=source.delivery_cursor)
    deliveries = list(
        newer.order_by("pk").values_list("pk", "provider", "context")[:MOST_DELIVERIES]
    )
    if not deliveries:
        return 0
    kind, settings = read_settings(source.settings)
    texts = [context for _, provider, context in deliveries if provider == source.type]
    wanted = any(kind.wakes(settings, context) for context in _contexts(texts))
    return in_transaction(lambda: _advance(source, deliveries[-1][0], now, wake=wanted))


def _contexts(texts: list[str]) -> Iterator[dict[str, Any]]:
    for text in texts:
        try:
            context = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(context, dict):
            yield context


def _advance(source: WorkSource, cursor: int, now: datetime, *, wake: bool) -> int:
    same = WorkSource.objects.filter(pk=source.pk, delivery_cursor=source.delivery_cursor)
    if not same.update(delivery_cursor=cursor) or not wake:
        return 0
    keys = [schedule.pk for schedule in _schedules_of(source)]
    later = Schedule.objects.filter(pk__in=keys, state=Schedule.State.ACTIVE, next_fire_at__gt=now)
    return later.update(next_fire_at=now, updated_at=now)


def _schedules_of(source: WorkSource) -> Iterator[Schedule]:
    active = Schedule.objects.filter(tenant=source.tenant_id, state=Schedule.State.ACTIVE)
    sourced = active.filter(Q(work_source__isnull=False) | Q(agent__work_source__isnull=False))
    for schedule in sourced.select_related("agent"):
        settings = claims.settings_of(schedule)
        if settings is not None and claims.fingerprint(settings) == source.fingerprint:
            yield schedule
