"""Writes the rows of deliveries, finds duplicates and updates results; queues no work."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import execute, fetch_one, insert_many, to_database_time
from agents_app.models import Delivery
from agents_app.webhooks.providers import (
    BODY_HASH_WINDOW_SECONDS,
    Decision,
    MatchResult,
    RawDelivery,
)
from agents_app.webhooks.source_index import IndexedSource

BODY_HASH_PREFIX = "sha256:"
# Credentials: they must not be stored.
CREDENTIAL_HEADERS = re.compile(r"authorization|cookie|token|secret|passw|api-?key|x-auth(?:-|$)")
LONGEST_HEADER, LONGEST_REASON, MOST_DECISIONS = 1000, 500, 1000
_COLUMNS = {
    **dict.fromkeys(("tenant_id", "source_id"), "bigint"),
    **dict.fromkeys(("provider", "delivery_id"), "text"),
    "id_expired": "boolean",
    "received_at": "timestamptz",
    **dict.fromkeys(("signed_by", "event", "action", "outcome", "reason"), "text"),
    **dict.fromkeys(("matched", "skipped"), "integer"),
    "headers": "text",
    "body": "bytea",
    **dict.fromkeys(("context", "decisions"), "text"),
    "replays": "integer",
}


@dataclass(frozen=True, slots=True)
class AcceptedDelivery:
    """A delivery with a valid signature, and the agents that it matches.

    `signer` is the name of the secret that signed it."""

    source: IndexedSource
    raw: RawDelivery
    signer: str
    result: MatchResult


@dataclass(frozen=True, slots=True)
class Receipt:
    """The response to the sender: the id of the delivery, and how many agents it matches."""

    delivery: int
    matched: int
    skipped: int
    duplicate: bool = False


def expire_body_hashes(accepted: Iterable[AcceptedDelivery], now: datetime) -> None:
    """Ends the uniqueness of old body hashes, so that an equal event can be stored again."""
    before = to_database_time(now - timedelta(seconds=BODY_HASH_WINDOW_SECONDS))
    for each in accepted:
        if each.raw.delivery_id.startswith(BODY_HASH_PREFIX):
            execute(
                "UPDATE drover_delivery SET id_expired = TRUE WHERE source_id = %s "
                "AND delivery_id = %s AND NOT id_expired AND received_at <= %s",
                [each.source.id, each.raw.delivery_id, before],
            )


def insert_new(accepted: Sequence[AcceptedDelivery]) -> list[tuple[AcceptedDelivery, int]]:
    """Inserts the deliveries that are not stored yet and returns them with their ids.

    Of several deliveries with the same source and delivery id the first one is inserted."""
    first: dict[tuple[int, str], AcceptedDelivery] = {}
    for each in accepted:
        first.setdefault((each.source.id, each.raw.delivery_id), each)
    # Sorted, so that two processes with the same deliveries cannot deadlock.
    values = [_values(first[key]) for key in sorted(first)]
    rows = insert_many("drover_delivery", _COLUMNS, values, "id, source_id, delivery_id")
    return [(first[source_id, delivery_id], key) for key, source_id, delivery_id in sorted(rows)]


def _values(accepted: AcceptedDelivery) -> tuple[Any, ...]:
    source, raw, result = accepted.source, accepted.raw, accepted.result
    return (
        *(source.tenant_id, source.id, source.kind, raw.delivery_id, False),
        *(raw.received_at, accepted.signer[:120]),
        *_result_columns(result).values(),
        *(_headers(raw), raw.body, context_text(result), _decisions(result), 0),
    )


def _result_columns(result: MatchResult) -> dict[str, Any]:
    matched = len(result.matched)
    return {
        "event": result.context.event[:200] if result.context else "",
        "action": ((result.context.action if result.context else "") or "")[:200],
        "outcome": result.outcome,
        "reason": result.reason[:LONGEST_REASON],
        "matched": matched,
        "skipped": len(result.decisions) - matched,
    }


def _headers(raw: RawDelivery) -> str:
    kept = {
        name: value[:LONGEST_HEADER]
        for name, value in raw.headers.items()
        if not CREDENTIAL_HEADERS.search(name)
    }
    return json.dumps(kept)


def context_text(result: MatchResult, **more: Any) -> str:
    if result.context is None:
        return ""
    fields = {**result.context.as_dict(), **more}
    # Lines joined here, because json takes ten times as long to write several lines as one.
    lines = [
        f'  "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in fields.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


def _decisions(result: MatchResult) -> str:
    stored = result.decisions[:MOST_DECISIONS]
    return json.dumps([decision_as_dict(decision) for decision in stored], ensure_ascii=False)


def decision_as_dict(decision: Decision) -> dict[str, Any]:
    """The stored form; without `misses` if the agent matched, and in rows of older versions."""
    fields = {"agent": decision.agent, "matched": decision.matched, "reason": decision.reason}
    sets = [[miss.as_dict() for miss in misses] for misses in decision.misses]
    return fields | ({"misses": sets} if sets else {})


def find_duplicate(accepted: AcceptedDelivery) -> Receipt:
    """The receipt of the stored delivery with the same source and delivery id."""
    row = fetch_one(
        "SELECT id, matched, skipped FROM drover_delivery "
        "WHERE source_id = %s AND delivery_id = %s AND NOT id_expired",
        [accepted.source.id, accepted.raw.delivery_id],
    )
    assert row is not None
    key, matched, skipped = row
    return Receipt(key, matched, skipped, duplicate=True)


def receipt_for(result: MatchResult, key: int) -> Receipt:
    matched = len(result.matched)
    return Receipt(key, matched, len(result.decisions) - matched)


def update_result(key: int, result: MatchResult) -> None:
    columns = _result_columns(result)
    columns |= {"context": context_text(result), "decisions": _decisions(result)}
    Delivery.objects.filter(pk=key).update(**columns)
