"""Webhook deliveries: stored, matched, queued, replayed.

Belongs here: rows of sources and deliveries.
Does not belong here: signatures (webhooks.providers), HTTP (gateway_app.webhooks).
"""

from agents_app.webhooks import deliveries, sources
from agents_app.webhooks.deliveries import headers_of, work_of
from agents_app.webhooks.delivery_rows import AcceptedDelivery, Receipt
from agents_app.webhooks.dry_run import EVENT_HEADERS, DryRun, dry_run_delivery, dry_run_provider
from agents_app.webhooks.refused import RefusalReason, RefusedRequest
from agents_app.webhooks.source_index import (
    IndexedSource,
    SourceIndex,
    read_source,
    read_source_index,
)
from agents_app.webhooks.sources import SHORTEST_SECRET

__all__ = [
    "EVENT_HEADERS",
    "SHORTEST_SECRET",
    "AcceptedDelivery",
    "DryRun",
    "IndexedSource",
    "Receipt",
    "RefusalReason",
    "RefusedRequest",
    "SourceIndex",
    "deliveries",
    "dry_run_delivery",
    "dry_run_provider",
    "headers_of",
    "read_source",
    "read_source_index",
    "sources",
    "work_of",
]
