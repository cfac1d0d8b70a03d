"""Creates a webhook source with an agent, and the table of the peer's view."""

from collections.abc import Sequence

from django.db import connection

from agents_app.models import Agent, Tenant, WebhookSource
from tests.benchmarks.inside.fleet import TENANT, write_agents


def write(command: Sequence[str], scale: int) -> None:
    write_agents(1, scale, command)
    tenant = Tenant.objects.get(name=TENANT)
    Agent.objects.update(webhooks=[{"source": "gh", "filters": {"events": ["issues"]}}])
    WebhookSource.objects.create(
        tenant=tenant, name="gh", type="github", secret_refs=["env:HOOK_SECRET"]
    )


def make_table() -> None:
    from tests.benchmarks.peer.hooks import Hook

    with connection.schema_editor() as editor:
        editor.create_model(Hook)
