"""Matches a body against the filters of agents; stores nothing and starts nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.models import WebhookSource
from agents_app.webhooks.delivery_rows import MOST_DECISIONS, decision_as_dict
from agents_app.webhooks.providers import (
    MatchResult,
    Provider,
    RawDelivery,
    match_subscriptions,
    provider_for,
)
from agents_app.webhooks.source_index import IndexedSource, read_source, read_subscriptions

# The header with the event, for providers whose body does not name it.
EVENT_HEADERS = {"github": "x-github-event", "sentry": "sentry-hook-resource"}


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result for one source; `source` is empty if the provider has no source."""

    source: str
    kind: str
    match: MatchResult

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """In the stored form, and as many as are stored."""
        return [decision_as_dict(each) for each in self.match.decisions[:MOST_DECISIONS]]

    @property
    def context(self) -> dict[str, Any]:
        """The context that agents would receive; empty if the delivery has none."""
        return self.match.context.as_dict() if self.match.context else {}


def dry_run_delivery(
    sources: Iterable[IndexedSource], headers: Mapping[str, str], body: bytes, now: datetime
) -> list[DryRun]:
    """Matches the body for each source with the current filters; checks no signature."""
    subscriptions = read_subscriptions()
    return [
        DryRun(
            source.name,
            source.kind,
            match_subscriptions(
                source.provider,
                _raw_delivery(source.provider, headers, body, now),
                subscriptions.get((source.tenant_id, source.name), ()),
            ),
        )
        for source in sources
    ]


def dry_run_provider(
    kind: str, headers: Mapping[str, str], body: bytes, now: datetime
) -> list[DryRun]:
    """Like `dry_run_delivery` for all sources of a provider; without sources it only parses."""
    rows = WebhookSource.objects.filter(type=kind, removed_at__isnull=True).order_by("name")
    sources = [source for row in rows if (source := read_source(row, ()))]
    if sources:
        return dry_run_delivery(sources, headers, body, now)
    provider = provider_for(kind, {})
    raw = _raw_delivery(provider, headers, body, now)
    return [DryRun("", kind, match_subscriptions(provider, raw, ()))]


def _raw_delivery(
    provider: Provider, headers: Mapping[str, str], body: bytes, now: datetime
) -> RawDelivery:
    return RawDelivery(headers, body, provider.delivery_id(headers, body), now)
