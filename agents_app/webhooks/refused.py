"""Stores a few of the refused requests of each source as deliveries without a body."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agents_app.database import execute, insert_many
from agents_app.models import Delivery
from agents_app.text import harmless
from agents_app.webhooks.delivery_rows import DELIVERY_COLUMNS
from agents_app.webhooks.providers import is_credential
from agents_app.webhooks.source_index import IndexedSource

RefusalReason = Literal["bad_signature", "stale", "foreign_origin", "rate_limited"]
# Any client can cause these rows: neither their number nor their size may grow.
MOST_PER_SOURCE = 50
MOST_HEADERS, LONGEST_VALUE = 20, 200
_DELETED_AT_ONCE = 1000
_SENTENCES: Mapping[str, str] = {
    "bad_signature": "the signature is missing or wrong: compare the secret of the sender with "
    "that of the source",
    "stale": "the time of the signature is too old or in the future: check the sender's clock",
    "foreign_origin": "an unsigned request of another site or for another host: give the source a "
    "secret, or add the host to DROVER_ALLOWED_HOSTS",
    "rate_limited": "too many deliveries of this source: DROVER_WEBHOOK_RATE is the limit",
}


@dataclass(slots=True)
class RefusedRequest:
    """A request that was refused; `count` is the number of equal requests, of which it is the
    first."""

    source: IndexedSource
    reason: RefusalReason
    address: str
    received_at: datetime
    headers: Mapping[str, str] = field(repr=False)
    size: int
    count: int = 1

    @property
    def key(self) -> tuple[int, str, str]:
        """Equal for requests of which one row is enough."""
        return self.source.id, self.reason, self.address


def store_refused(requests: Iterable[RefusedRequest]) -> None:
    """Inserts a row for each request and deletes the oldest rows; needs a transaction."""
    stored = list(requests)
    insert_many("drover_delivery", DELIVERY_COLUMNS, [_values(each) for each in stored], "id")
    for source_id in sorted({each.source.id for each in stored}):
        execute(
            "DELETE FROM drover_delivery WHERE id IN (SELECT id FROM drover_delivery "
            "WHERE source_id = %s AND outcome = 'refused' ORDER BY id DESC LIMIT %s OFFSET %s)",
            [source_id, _DELETED_AT_ONCE, MOST_PER_SOURCE],
        )


def _values(request: RefusedRequest) -> tuple[object, ...]:
    source = request.source
    return (
        # Such an id is not unique: it is not known who has sent it.
        *(source.tenant_id, source.id, source.kind, _delivery_id(request), True),
        *(request.received_at, "", "", "", str(Delivery.Outcome.REFUSED), _reason(request)),
        *(0, 0, _headers(request.headers), b"", None, "", "[]", 0),
    )


def _delivery_id(request: RefusedRequest) -> str:
    """The id in a header. An id in the body is not read: only signed bodies are parsed."""
    found = request.source.provider.delivery_id(request.headers, b"")
    return "" if found.startswith("sha256:") else found


def _reason(request: RefusedRequest) -> str:
    sent = f"{request.count} requests" if request.count > 1 else f"{request.size} bytes"
    sender = f" from {request.address}" if request.address else ""
    return f"{_SENTENCES[request.reason]} ({sent}{sender})"


def _headers(headers: Mapping[str, str]) -> str:
    shown = [name for name in headers if not is_credential(name)][:MOST_HEADERS]
    return json.dumps({name[:100]: harmless(headers[name])[:LONGEST_VALUE] for name in shown})
