"""Those who are to be told become rows, and rows become letters; sending is a duty's."""

from urllib.parse import urlsplit

from agents_app.conf import CONF
from agents_app.models import NotifyTarget, RunEvent
from agents_app.notifications.payloads import Notice
from agents_app.secrets import read_secret

MOST_AT_ONCE = 20


def url_of(target: NotifyTarget) -> str:
    """The URL itself, empty if it is kept elsewhere and not there."""
    return read_secret(target.url) if target.url.startswith(("env:", "file:")) else target.url


def shown(target: NotifyTarget) -> str:
    """For people: only the host, because the rest of such a URL is often a secret."""
    return urlsplit(url_of(target)).hostname or target.url[:60]


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
        url=f"{CONF.public_url}/admin/{_page_of(event)}/" if CONF.public_url else "",
    )


def _page_of(event: RunEvent) -> str:
    return f"runs/{event.run_id}" if event.run_id else "rules"
