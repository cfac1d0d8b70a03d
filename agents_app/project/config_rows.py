"""What config.toml declares becomes rows: webhook sources and notification targets."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max

from agents_app.models import RunEvent, Tenant, WebhookSource
from agents_app.skills import NotifySpec, WebhookSourceSpec


def sync_targets(tenant: Tenant, specs: Iterable[NotifySpec]) -> None:
    """What config.toml says, in the caller's transaction; a new one is told what happens next."""
    named = {spec.url: spec for spec in specs}
    tenant.notify_targets.exclude(url__in=named).delete()
    newest = RunEvent.objects.aggregate(last=Max("pk"))["last"] or 0
    for url, spec in named.items():
        columns = {"events": list(spec.on), "secret_ref": spec.secret or "", "format": spec.format}
        tenant.notify_targets.update_or_create(
            url=url, defaults=columns, create_defaults={**columns, "cursor": newest}
        )


def sync_sources(tenant: Tenant, specs: Iterable[WebhookSourceSpec], now: datetime) -> None:
    """What config.toml says, in the caller's transaction; a person's of the same name is its now.

    What a person switched off stays off; secrets that people gave to it go on counting.
    """
    named = {spec.name: _columns(spec) for spec in specs}
    for name, columns in named.items():
        columns |= {"origin": WebhookSource.Origin.FILE, "removed_at": None}
        tenant.webhook_sources.update_or_create(name=name, defaults=columns)
    of_file = tenant.webhook_sources.filter(origin=WebhookSource.Origin.FILE)
    of_file.filter(removed_at__isnull=True).exclude(name__in=named).update(removed_at=now)


def _columns(spec: WebhookSourceSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "secret_refs": list(spec.secrets),
        "credential": spec.credential,
        "allow_unsigned": spec.allow_unsigned,
        "options": dict(spec.options),
    }
