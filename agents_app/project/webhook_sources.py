"""Finds subscriptions to webhook sources that do not exist."""

from pathlib import Path

from django.db import DatabaseError

from agents_app.models import DEFAULT_TENANT, WebhookSource
from agents_app.names import closest
from agents_app.skills import Discovery, SkillError, SourcePlace

ADVICE = "add [webhooks.{name}] to config.toml, or create the source in the dashboard"


def find_missing_sources(
    found: Discovery, project: Path, tenant_name: str = DEFAULT_TENANT
) -> tuple[SkillError, ...]:
    """An error for each `webhooks` entry whose source neither config.toml nor the database has.

    The definition of the agent stays in force: the source may be created later.
    """
    known = {source.name for source in found.project.webhooks} | _created_by_people(tenant_name)
    errors = []
    for agent in found.agents:
        path = agent.source_path.relative_to(project.resolve()).as_posix()
        for number, webhook in enumerate(agent.webhooks, start=1):
            if webhook.source not in known:
                reason = f"webhooks.{number}.source: {missing_source(webhook.source, known)}"
                errors.append(SkillError(reason, SourcePlace(path), agent=agent.name))
    return tuple(errors)


def missing_source(name: str, known: set[str]) -> str:
    """What is wrong, with a similar name or the way to create the source."""
    close = closest(name, known)
    remedy = f"did you mean {close!r}?" if close else ADVICE.format(name=name)
    return f"there is no webhook source {name!r}: {remedy}"


def _created_by_people(tenant_name: str) -> set[str]:
    """The sources of the tenant that are not in its file; empty without a database."""
    rows = WebhookSource.objects.filter(
        tenant__name=tenant_name, origin=WebhookSource.Origin.PERSON, removed_at__isnull=True
    )
    try:
        return set(rows.values_list("name", flat=True))
    except DatabaseError:
        return set()
