"""What a body would be understood as and whom it would start; nothing is stored, nothing runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import WebhookSource
from agents_app.webhooks.delivery_rows import MOST_DECISIONS, decision_facts
from agents_app.webhooks.providers import (
    Provider,
    RawDelivery,
    Reading,
    match_listeners,
    provider_for,
)
from agents_app.webhooks.source_index import IndexedSource, read_listeners, read_source

# Where a provider's event stands that is not in the body.
EVENT_HEADERS = {"github": "x-github-event", "sentry": "sentry-hook-resource"}


@dataclass(frozen=True, slots=True)
class DryRun:
    """`source` is empty where a provider was tried that no source is of."""

    source: str
    kind: str
    reading: Reading

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """As those of a delivery that was stored, and as many."""
        return [decision_facts(each) for each in self.reading.decisions[:MOST_DECISIONS]]

    @property
    def told(self) -> dict[str, Any]:
        """What agents would be told of it."""
        return self.reading.context.as_dict() if self.reading.context else {}


def dry_run_delivery(
    sources: Iterable[IndexedSource], headers: Mapping[str, str], body: bytes, now: datetime
) -> list[DryRun]:
    """As each of these sources would take it today; who signed it is not asked."""
    listeners = read_listeners()
    return [
        DryRun(
            source.name,
            source.kind,
            match_listeners(
                source.provider,
                _letter(source.provider, headers, body, now),
                listeners.get((source.tenant_id, source.name), ()),
            ),
        )
        for source in sources
    ]


def dry_run_provider(
    kind: str, headers: Mapping[str, str], body: bytes, now: datetime
) -> list[DryRun]:
    """As all sources of a provider would take it; if there are none, what it would be read as."""
    rows = WebhookSource.objects.filter(type=kind, removed_at__isnull=True).order_by("name")
    sources = [source for row in rows if (source := read_source(row, ()))]
    if sources:
        return dry_run_delivery(sources, headers, body, now)
    provider = provider_for(kind, {})
    return [DryRun("", kind, match_listeners(provider, _letter(provider, headers, body, now), ()))]


def _letter(
    provider: Provider, headers: Mapping[str, str], body: bytes, now: datetime
) -> RawDelivery:
    return RawDelivery(headers, body, provider.delivery_id(headers, body), now)
