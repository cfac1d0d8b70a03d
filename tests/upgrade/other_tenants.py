"""What no command of version 0.1.0 makes: agents of other tenants, secrets of sources, locks.

Executed by `manage.py shell` of version 0.1.0, whose functions it calls.
"""

from contextlib import suppress
from datetime import UTC, datetime

from agents_app import locks, webhook_sources
from agents_app.models import Agent, Tenant, WebhookSource


def make(project: str, secrets: dict[str, str], revoked: str) -> None:
    now = datetime.now(UTC)
    acme = Tenant.objects.get(name="acme")
    for tenant in (acme, Tenant.objects.get(name="closed")):
        Agent.objects.create(
            tenant=tenant,
            name="reporter",
            description="Of another tenant",
            command=["echo", "hello from", tenant.name],
            directory=f"{project}/tenants/{tenant.name}",
            webhooks=[{"source": "acme-hook"}] if tenant == acme else [],
        )
    hook = WebhookSource(tenant=acme, name="acme-hook", type="generic")
    webhook_sources.save_source(hook, "operator", now)
    webhook_sources.add_secret(hook, "main", secrets["acme-hook"], "operator", now)
    repo = WebhookSource.objects.get(tenant__name="default", name="repo")
    webhook_sources.add_secret(repo, "current", secrets["repo"], "operator", now)
    old = webhook_sources.add_secret(repo, "old", revoked, "operator", now)
    webhook_sources.revoke_secret(old, "operator", now)
    take_locks(repo.tenant_id, now)


def take_locks(tenant_id: int, now: datetime) -> None:
    """One holder, and one that was refused and waits."""
    uri = "file:///srv/release"
    locks.acquire(locks.Holder(tenant_id, "deploy-tool"), uri, now, ttl=30 * 86400)
    with suppress(locks.LockRefused):
        locks.acquire(locks.Holder(tenant_id, "backup-tool"), uri, now)
