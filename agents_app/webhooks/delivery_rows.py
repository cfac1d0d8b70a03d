"""The rows of deliveries: how one is written, found again and written anew; not what follows."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents_app.database import execute, fetch_one, insert_many, to_database_time
from agents_app.models import Delivery
from agents_app.webhooks.providers import BODY_HASH_WINDOW_SECONDS, Decision, RawDelivery, Reading
from agents_app.webhooks.source_index import IndexedSource

HASHED = "sha256:"
# Names and secrets of people, and what only mattered on the way here.
NOT_KEPT = re.compile(r"authorization|cookie|token|secret|passw|api-?key|x-auth(?:-|$)")
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
class Arrival:
    """A delivery that was let in, and what it was understood as."""

    source: IndexedSource
    letter: RawDelivery
    signer: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the sender is told: the delivery's number, and for how many agents it is."""

    delivery: int
    matched: int
    skipped: int
    duplicate: bool = False


def expire_ids(arrivals: Iterable[Arrival], now: datetime) -> None:
    """The same body once more after a while is a new event, unless its sender numbers them."""
    before = to_database_time(now - timedelta(seconds=BODY_HASH_WINDOW_SECONDS))
    for arrival in arrivals:
        if arrival.letter.delivery_id.startswith(HASHED):
            execute(
                "UPDATE drover_delivery SET id_expired = TRUE WHERE source_id = %s "
                "AND delivery_id = %s AND NOT id_expired AND received_at <= %s",
                [arrival.source.id, arrival.letter.delivery_id, before],
            )


def insert(arrivals: Sequence[Arrival]) -> list[tuple[Arrival, int]]:
    """Those that are new, with their numbers; of two that are the same the first one is."""
    first: dict[tuple[int, str], Arrival] = {}
    for arrival in arrivals:
        first.setdefault((arrival.source.id, arrival.letter.delivery_id), arrival)
    # In one order: of two processes that have the same two deliveries none waits for the other.
    ordered = [first[key] for key in sorted(first)]
    values = [_values(arrival) for arrival in ordered]
    rows = insert_many("drover_delivery", _COLUMNS, values, "id, source_id, delivery_id")
    return [(first[source_id, delivery_id], key) for key, source_id, delivery_id in sorted(rows)]


def _values(arrival: Arrival) -> tuple[Any, ...]:
    source, letter, reading = arrival.source, arrival.letter, arrival.reading
    return (
        *(source.tenant_id, source.id, source.kind, letter.delivery_id, False),
        *(
            letter.received_at,
            arrival.signer[:120],
            *_understood(reading).values(),
        ),
        *(_headers(letter), letter.body, context_text(reading), _decisions(reading), 0),
    )


def _understood(reading: Reading) -> dict[str, Any]:
    matched = len(reading.matched)
    return {
        "event": reading.context.event[:200] if reading.context else "",
        "action": ((reading.context.action if reading.context else "") or "")[:200],
        "outcome": reading.outcome,
        "reason": reading.reason[:LONGEST_REASON],
        "matched": matched,
        "skipped": len(reading.decisions) - matched,
    }


def _headers(letter: RawDelivery) -> str:
    kept = {n: v[:LONGEST_HEADER] for n, v in letter.headers.items() if not NOT_KEPT.search(n)}
    return json.dumps(kept)


def context_text(reading: Reading, **more: Any) -> str:
    if reading.context is None:
        return ""
    said = {**reading.context.as_dict(), **more}
    # By hand, because json writes several lines ten times as slowly as one.
    lines = [f'  "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in said.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _decisions(reading: Reading) -> str:
    some = reading.decisions[:MOST_DECISIONS]
    return json.dumps([decision_facts(decision) for decision in some], ensure_ascii=False)


def decision_facts(decision: Decision) -> dict[str, Any]:
    """As it is stored; without `misses` for whoever has it, and in rows of older versions."""
    facts = {"agent": decision.agent, "matched": decision.matched, "reason": decision.reason}
    sets = [[miss.as_dict() for miss in misses] for misses in decision.misses]
    return facts | ({"misses": sets} if sets else {})


def known(arrival: Arrival) -> Receipt:
    row = fetch_one(
        "SELECT id, matched, skipped FROM drover_delivery "
        "WHERE source_id = %s AND delivery_id = %s AND NOT id_expired",
        [arrival.source.id, arrival.letter.delivery_id],
    )
    assert row is not None
    key, matched, skipped = row
    return Receipt(key, matched, skipped, duplicate=True)


def receipt(reading: Reading, key: int) -> Receipt:
    matched = len(reading.matched)
    return Receipt(key, matched, len(reading.decisions) - matched)


def rewrite(key: int, reading: Reading) -> None:
    columns = _understood(reading)
    columns |= {"context": context_text(reading), "decisions": _decisions(reading)}
    Delivery.objects.filter(pk=key).update(**columns)
