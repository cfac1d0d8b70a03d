"""Webhook deliveries: stored, matched, queued, replayed.

Belongs here: rows of sources and deliveries.
Does not belong here: signatures (webhooks.providers), HTTP (gateway_app.webhooks).
"""

from agents_app.webhooks import deliveries, sources
from agents_app.webhooks.deliveries import delivery_of, headers_of, work_of
from agents_app.webhooks.delivery_rows import Arrival, Receipt
from agents_app.webhooks.dry_run import EVENT_HEADERS, Trial, try_letter, try_provider
from agents_app.webhooks.source_index import Book, Source, read_book, read_source
from agents_app.webhooks.sources import SHORTEST_SECRET

__all__ = [
    "EVENT_HEADERS",
    "SHORTEST_SECRET",
    "Arrival",
    "Book",
    "Receipt",
    "Source",
    "Trial",
    "deliveries",
    "delivery_of",
    "headers_of",
    "read_book",
    "read_source",
    "sources",
    "try_letter",
    "try_provider",
    "work_of",
]
