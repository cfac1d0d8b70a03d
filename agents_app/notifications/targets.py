"""Those who are to be told become rows, and rows become letters; sending is a duty's."""

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db import connection
from django.db.models import Max, Min

from agents_app.conf import CONF
from agents_app.database import fetch_one
from agents_app.models import NotifyTarget, RunEvent
from agents_app.notifications.payloads import Notice
from agents_app.secrets import read_secret

# Between taking its number and being seen by others an event takes milliseconds.
SETTLE = timedelta(seconds=2)
MOST_AT_ONCE = 20


def url_of(target: NotifyTarget) -> str:
    """The URL itself, empty if it is kept elsewhere and not there."""
    return read_secret(target.url) if target.url.startswith(("env:", "file:")) else target.url


def shown(target: NotifyTarget) -> str:
    """For people: only the host, because the rest of such a URL is often a secret."""
    return urlsplit(url_of(target)).hostname or target.url[:60]


def last_settled(after: int, now: datetime) -> int:
    """The newest event below which nobody can still write one.

    On PostgreSQL numbers are taken before they are committed: what is younger than the oldest
    transaction that writes has to wait, or one that comes late would be passed over.
    """
    later = RunEvent.objects.filter(pk__gt=after)
    if connection.vendor != "sqlite":
        horizon = min(now, _oldest_writer() or now) - SETTLE
        young = later.filter(at__gt=horizon).aggregate(pk=Min("pk"))["pk"]
        # Not the number before it: that may be the one that is still to come.
        later = later.filter(pk__lt=young) if young else later
    return int(later.aggregate(pk=Max("pk"))["pk"] or after)


def _oldest_writer() -> datetime | None:
    row = fetch_one(
        "SELECT min(xact_start) FROM pg_stat_activity"
        " WHERE datname = current_database() AND backend_xid IS NOT NULL",
        [],
    )
    return row[0] if row else None


def waiting_for(target: NotifyTarget, settled: int) -> list[Notice]:
    """The next letters of a target, oldest first."""
    events = RunEvent.objects.filter(
        tenant_id=target.tenant_id, name__in=target.events, pk__gt=target.cursor, pk__lte=settled
    )
    joined = events.select_related("agent", "run").order_by("pk")[:MOST_AT_ONCE]
    return [_notice(event) for event in joined]


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
        url=f"{CONF.public_url}/admin/agents_app/{_page_of(event)}/" if CONF.public_url else "",
    )


def _page_of(event: RunEvent) -> str:
    return f"run/{event.run_id}" if event.run_id else "rulestate"
