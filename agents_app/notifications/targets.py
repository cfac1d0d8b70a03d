"""The URL and label of a notification target, and the notices that it has not received yet."""

from datetime import datetime
from urllib.parse import urlsplit

from django.db.models import QuerySet

from agents_app.conf import CONF
from agents_app.database import in_transaction
from agents_app.errors import Refused
from agents_app.events import journal
from agents_app.models import NotifyTarget, RunEvent
from agents_app.notifications.payloads import ANNOUNCED, Notice
from agents_app.runs import Job
from agents_app.secrets import read_secret

MAX_NOTICES = 20


def target_url(target: NotifyTarget) -> str:
    """The URL of the target; empty if it is a reference to a secret that does not exist."""
    if not target.url.startswith(("env:", "file:")):
        return target.url
    return read_secret(target.url, target.tenant)


def target_label(target: NotifyTarget) -> str:
    """The host of the target, for messages: the rest of the URL is often a secret."""
    return urlsplit(target_url(target)).hostname or target.url[:60]


def pending_notices(target: NotifyTarget, settled: int) -> list[Notice]:
    """The next notices of a target up to the event `settled`, oldest first."""
    events = events_for(target).filter(pk__gt=target.cursor, pk__lte=settled)
    joined = events.select_related("agent", "run").order_by("pk")[:MAX_NOTICES]
    return [_notice(event) for event in joined]


def events_for(target: NotifyTarget) -> "QuerySet[RunEvent]":
    names = [*target.events, ANNOUNCED]
    return RunEvent.objects.filter(tenant_id=target.tenant_id, name__in=names)


def announce(job: Job, text: str, now: datetime) -> None:
    """Record an event that the duty `notify` sends to all targets; Refused if there is none."""
    if not NotifyTarget.objects.filter(tenant=job.tenant_id).exists():
        raise Refused("there is no notification target: add [[notify]] to config.toml")
    entry = journal.JournalEntry(
        "run.notified", now, job.tenant_id, job.agent_id, job.run_id, text, job.trace_id
    )
    in_transaction(lambda: journal.record(entry))


def _notice(event: RunEvent) -> Notice:
    run = event.run
    return Notice(
        id=event.pk,
        name=event.name,
        at=event.at,
        detail=event.detail,
        agent=event.agent.name if event.agent else "",
        run_id=event.run_id,
        trigger=run.trigger if run else "",
        attempt=run.attempt if run else 1,
        exit_code=run.exit_code if run else None,
        url=f"{CONF.public_url}/admin/{_page_of(event)}/" if CONF.public_url else "",
    )


def _page_of(event: RunEvent) -> str:
    return f"runs/{event.run_id}" if event.run_id else "rules"
