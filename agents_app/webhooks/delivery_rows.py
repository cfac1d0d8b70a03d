"""Writes the rows of deliveries, finds duplicates and updates results; queues no work."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import execute, fetch_one, insert_many, to_database_time
from agents_app.models import Delivery
from agents_app.webhooks.providers import (
    BODY_HASH_WINDOW_SECONDS,
    UNIQUE_BODY_SECONDS,
    Decision,
    MatchResult,
    RawDelivery,
    is_credential,
)
from agents_app.webhooks.source_index import IndexedSource

BODY_HASH_PREFIX = "sha256:"
LONGEST_HEADER, LONGEST_REASON, MOST_DECISIONS = 1000, 500, 1000
DELIVERY_COLUMNS = {
    **dict.fromkeys(("tenant_id", "source_id"), "bigint"),
    **dict.fromkeys(("provider", "delivery_id"), "text"),
    "id_expired": "boolean",
    "received_at": "timestamptz",
    **dict.fromkeys(("signed_by", "event", "action", "outcome", "reason"), "text"),
    **dict.fromkeys(("matched", "skipped"), "integer"),
    "headers": "text",
    **dict.fromkeys(("body", "body_sha256"), "bytea"),
    **dict.fromkeys(("context", "decisions"), "text"),
    "replays": "integer",
}


@dataclass(frozen=True, slots=True)
class AcceptedDelivery:
    """A delivery with a valid signature, and the agents that it matches.

    `signer` is the name of the secret that signed it. `body_sha256` is None if the provider may
    send the same body for several events."""

    source: IndexedSource
    raw: RawDelivery
    signer: str
    result: MatchResult
    body_sha256: bytes | None = None


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


def insert_new(
    accepted: Sequence[AcceptedDelivery], now: datetime
) -> list[tuple[AcceptedDelivery, int]]:
    """Inserts the deliveries that are not stored yet and returns them with their ids.

    Of several deliveries with the same source and delivery id, or body, the first is inserted."""
    written = _insert(accepted)
    if len(written) == len(accepted):
        return written
    known = {id(each) for each, _ in written}
    repeated = {
        (each.source.id, each.body_sha256): each
        for each in accepted
        if each.body_sha256 is not None and id(each) not in known
    }
    # After the insert, because a body hardly ever repeats: new bodies cost no further statement.
    return written + _insert([each for each in repeated.values() if _expire_body(each, now)])


def _expire_body(accepted: AcceptedDelivery, now: datetime) -> bool:
    """Ends the uniqueness of the body if it was received too long ago; True if it has ended."""
    before = to_database_time(now - timedelta(seconds=UNIQUE_BODY_SECONDS))
    changed = execute(
        "UPDATE drover_delivery SET body_sha256 = NULL WHERE source_id = %s "
        "AND body_sha256 = %s AND received_at <= %s",
        [accepted.source.id, accepted.body_sha256, before],
    )
    return bool(changed.rowcount)


def _insert(accepted: Sequence[AcceptedDelivery]) -> list[tuple[AcceptedDelivery, int]]:
    first: dict[tuple[int, str], AcceptedDelivery] = {}
    for each in accepted:
        first.setdefault((each.source.id, each.raw.delivery_id), each)
    # Sorted, so that two processes with the same deliveries cannot deadlock.
    ordered = sorted(
        first.values(),
        key=lambda each: (each.source.id, each.body_sha256 or b"", each.raw.delivery_id),
    )
    values = [_values(each) for each in ordered]
    rows = insert_many("drover_delivery", DELIVERY_COLUMNS, values, "id, source_id, delivery_id")
    return [(first[source_id, delivery_id], key) for key, source_id, delivery_id in sorted(rows)]


def _values(accepted: AcceptedDelivery) -> tuple[Any, ...]:
    source, raw, result = accepted.source, accepted.raw, accepted.result
    return (
        *(source.tenant_id, source.id, source.kind, raw.delivery_id, False),
        *(raw.received_at, accepted.signer[:120]),
        *_result_columns(result).values(),
        *(_headers(raw), raw.body, accepted.body_sha256),
        *(context_text(result), _decisions(result), 0),
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
        if not is_credential(name)
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
    """The receipt of the stored delivery of the same source with the same delivery id or body."""
    row = _find(accepted, "delivery_id = %s AND NOT id_expired", accepted.raw.delivery_id)
    if row is None:
        row = _find(accepted, "body_sha256 = %s", accepted.body_sha256)
    assert row is not None
    key, matched, skipped = row
    return Receipt(key, matched, skipped, duplicate=True)


def _find(accepted: AcceptedDelivery, condition: str, value: Any) -> Any:
    return fetch_one(
        f"SELECT id, matched, skipped FROM drover_delivery WHERE source_id = %s AND {condition}",  # noqa: S608
        [accepted.source.id, value],
    )


def receipt_for(result: MatchResult, key: int) -> Receipt:
    matched = len(result.matched)
    return Receipt(key, matched, len(result.decisions) - matched)


def update_result(key: int, result: MatchResult) -> None:
    columns = _result_columns(result)
    columns |= {"context": context_text(result), "decisions": _decisions(result)}
    Delivery.objects.filter(pk=key).update(**columns)
