"""A webhook that was let in is stored and becomes work, all or nothing; and again when asked to."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from django.db.models import QuerySet

from agents_app.database import fetch_one, in_transaction, to_database_time
from agents_app.errors import Refused
from agents_app.events import journal, trace_id_of
from agents_app.models import Delivery, Trigger, WebhookSource, WorkItem
from agents_app.runs import Request, dispatch
from agents_app.webhooks.delivery_rows import (
    Arrival,
    Receipt,
    context_text,
    expire_ids,
    insert,
    known,
    receipt,
    rewrite,
)
from agents_app.webhooks.providers import RawDelivery, match_listeners, visible_headers
from agents_app.webhooks.source_index import IndexedSource, SourceIndex, read_listeners, read_source


def arrive(book: SourceIndex, source: IndexedSource, letter: RawDelivery, signer: str) -> Arrival:
    return Arrival(
        source, letter, signer, match_listeners(source.provider, letter, book.listening(source))
    )


# --- storing --------------------------------------------------------------------------------


def store(arrivals: Sequence[Arrival], now: datetime) -> list[Receipt]:
    """All of them in one commit; on disk when this returns, each with its work."""
    return in_transaction(lambda: _store(arrivals, now))


def _store(arrivals: Sequence[Arrival], now: datetime) -> list[Receipt]:
    expire_ids(arrivals, now)
    written = insert(arrivals)
    closed = dispatch.enqueue_many_in_transaction(
        [each for arrival, key in written for each in _requests(arrival, key, _trace(arrival))],
        now,
    )
    if closed:
        written = [(_without(arrival, key, closed), key) for arrival, key in written]
    new = {id(arrival.letter): receipt(arrival.reading, key) for arrival, key in written}
    return [new.get(id(arrival.letter)) or known(arrival) for arrival in arrivals]


# --- work -----------------------------------------------------------------------------------


def _trace(arrival: Arrival) -> str:
    """The sender's, if it sent one; else one that all work of the delivery shares."""
    return trace_id_of(arrival.letter.headers.get("traceparent")) or uuid4().hex


def _requests(
    arrival: Arrival, key: int, trace_id: str, replay: int = 0, by: str = ""
) -> list[Request]:
    again = f":replay{replay}" if replay else ""
    context = context_text(arrival.reading, **({"replay": replay} if replay else {}))
    return [
        Request(
            tenant_id=arrival.source.tenant_id,
            agent_id=decision.agent_id,
            trigger=Trigger.WEBHOOK,
            context=context,
            requested_by=(by or f"webhook {arrival.source.name}")[:200],
            idempotency_key=f"delivery:{key}:{decision.agent}{again}",
            delivery_id=key,
            trace_id=trace_id,
        )
        for decision in arrival.reading.matched
    ]


def _without(arrival: Arrival, key: int, closed: dict[int, str]) -> Arrival:
    """Agents that were disabled a moment ago: what was decided about them is written anew."""
    decisions = tuple(
        replace(d, reason=d.reason or closed.get(d.agent_id, "")) for d in arrival.reading.decisions
    )
    if decisions == arrival.reading.decisions:
        return arrival
    found = any(decision.matched for decision in decisions)
    reading = replace(arrival.reading, decisions=decisions)
    if not found:
        reading = replace(reading, outcome="unmatched", reason="no agent that wants it is enabled")
    rewrite(key, reading)
    return replace(arrival, reading=reading)


# --- reading --------------------------------------------------------------------------------


def headers_of(delivery: Delivery) -> dict[str, str]:
    return visible_headers(json.loads(delivery.headers), delivery.source.options)


def work_of(delivery: Delivery) -> QuerySet[WorkItem]:
    """Of all its replays, too."""
    return delivery.work_items.select_related("agent").order_by("pk")


# --- replaying ------------------------------------------------------------------------------


def replay(delivery: Delivery, by: str, now: datetime, trace_id: str = "") -> Receipt:
    """The same delivery for whoever wants it now: new work, also for those who had it already."""
    row = WebhookSource.objects.select_related("tenant").get(pk=delivery.source_id)
    source = read_source(row, ())
    if source is None:
        raise Refused(f"the source {row.name!r} cannot be used: its settings make no sense")
    if row.tenant.disabled_at:
        raise Refused("the tenant is disabled: enable it first")
    arrival = again(delivery, source)
    # Not the sender's: this is the story of whoever asks for it.
    trace_id = trace_id or uuid4().hex
    return in_transaction(lambda: _replay(arrival, delivery.pk, by, now, trace_id))


def again(delivery: Delivery, source: IndexedSource) -> Arrival:
    """What it would be understood as today."""
    headers = json.loads(delivery.headers)
    letter = RawDelivery(headers, bytes(delivery.body), delivery.delivery_id, delivery.received_at)
    return arrive(SourceIndex((source,), read_listeners()), source, letter, delivery.signed_by)


def _replay(arrival: Arrival, key: int, by: str, now: datetime, trace_id: str) -> Receipt:
    row = fetch_one(
        "UPDATE drover_delivery SET replays = replays + 1, replayed_at = %s WHERE id = %s "
        "RETURNING replays",
        [to_database_time(now), key],
    )
    if row is None:
        raise Refused(f"delivery {key} is gone: old ones are removed after a while")
    asked_by = f"{by}, replay {row[0]} of delivery {key}"
    rewrite(key, arrival.reading)
    wanted = _requests(arrival, key, trace_id, row[0], asked_by)
    closed = dispatch.enqueue_many_in_transaction(wanted, now)
    reading = _without(arrival, key, closed).reading
    about = f"{by}: delivery {key}, {len(reading.matched)} matched"
    tenant_id = arrival.source.tenant_id
    entry = journal.JournalEntry(
        "delivery.replayed", now, tenant_id, detail=about, trace_id=trace_id
    )
    journal.record(entry)
    return receipt(reading, key)
