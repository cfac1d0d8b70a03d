"""Synchronizes webhook sources and notification targets of config.toml with their rows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max

from agents_app.models import RunEvent, Tenant, WebhookSource
from agents_app.skills import Discovery, NotifySpec, WebhookSourceSpec


def sync_notification_targets(tenant: Tenant, specs: Iterable[NotifySpec]) -> None:
    """Write the targets; in the caller's transaction. A new target gets only later events."""
    named = {spec.url: spec for spec in specs}
    tenant.notify_targets.exclude(url__in=named).delete()
    newest = RunEvent.objects.aggregate(last=Max("pk"))["last"] or 0
    for url, spec in named.items():
        columns = {"events": list(spec.on), "secret_ref": spec.secret or "", "format": spec.format}
        tenant.notify_targets.update_or_create(
            url=url, defaults=columns, create_defaults={**columns, "cursor": newest}
        )


def sync_webhook_sources(tenant: Tenant, specs: Iterable[WebhookSourceSpec], now: datetime) -> None:
    """Write the sources; in the caller's transaction.

    A source that was created by hand and has the same name becomes one of the file; it keeps its
    secrets and stays disabled if it was disabled.
    """
    named = {spec.name: _columns(spec) for spec in specs}
    for name, columns in named.items():
        columns |= {"origin": WebhookSource.Origin.FILE, "removed_at": None}
        tenant.webhook_sources.update_or_create(name=name, defaults=columns)
    of_file = tenant.webhook_sources.filter(origin=WebhookSource.Origin.FILE)
    of_file.filter(removed_at__isnull=True).exclude(name__in=named).update(removed_at=now)


def environment_references(found: Discovery) -> list[str]:
    """An error for each reference of a tenant's files to an environment variable; the variables
    of the installation belong to the default tenant."""
    references: list[tuple[str, str | None]] = [
        (f"config.toml: webhooks.{spec.name}", ref)
        for spec in found.project.webhooks
        for ref in spec.secrets
    ]
    for target in found.project.notify:
        references += [("config.toml: notify", target.url), ("config.toml: notify", target.secret)]
    for agent in found.agents:
        sources = [agent.work_source, *(schedule.work_source for schedule in agent.schedules)]
        columns = [source.as_columns() for source in sources if source]
        references += [(f"{agent.name}: work_source.auth", each.get("auth")) for each in columns]
    return [
        f"{place}: {ref} is not set: environment variables belong to the tenant default; "
        "use a credential or file:PATH"
        for place, ref in references
        if ref and ref.startswith("env:")
    ]


def _columns(spec: WebhookSourceSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "secret_refs": list(spec.secrets),
        "credential": spec.credential,
        "allow_unsigned": spec.allow_unsigned,
        "options": dict(spec.options),
    }
