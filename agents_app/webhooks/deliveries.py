"""Stores accepted deliveries with the work they cause in one transaction, and replays them."""

import hashlib
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
    AcceptedDelivery,
    Receipt,
    context_text,
    expire_body_hashes,
    find_duplicate,
    insert_new,
    receipt_for,
    update_result,
)
from agents_app.webhooks.providers import RawDelivery, match_subscriptions, visible_headers
from agents_app.webhooks.source_index import (
    IndexedSource,
    SourceIndex,
    read_source,
    read_subscriptions,
)


def match_delivery(
    index: SourceIndex, source: IndexedSource, raw: RawDelivery, signer: str
) -> AcceptedDelivery:
    """Matches a delivery with a valid signature; `signer` names the secret that signed it."""
    result = match_subscriptions(source.provider, raw, index.subscriptions_of(source))
    unique = source.provider.unique_bodies
    body_sha256 = hashlib.sha256(raw.body).digest() if unique else None
    return AcceptedDelivery(source, raw, signer, result, body_sha256)


# --- storing --------------------------------------------------------------------------------


def store(accepted: Sequence[AcceptedDelivery], now: datetime) -> list[Receipt]:
    """Stores all deliveries and queues their work in one transaction, which is then committed."""
    return in_transaction(lambda: _store(accepted, now))


def _store(accepted: Sequence[AcceptedDelivery], now: datetime) -> list[Receipt]:
    expire_body_hashes(accepted, now)
    written = insert_new(accepted, now)
    closed = dispatch.enqueue_many_in_transaction(
        [request for each, key in written for request in _requests(each, key, _trace_id(each))],
        now,
    )
    if closed:
        written = [(_with_disabled_agents(each, key, closed), key) for each, key in written]
    new = {id(each.raw): receipt_for(each.result, key) for each, key in written}
    return [new.get(id(each.raw)) or find_duplicate(each) for each in accepted]


# --- work -----------------------------------------------------------------------------------


def _trace_id(accepted: AcceptedDelivery) -> str:
    """The trace id of the sender, or a new one; all work of the delivery has it."""
    return trace_id_of(accepted.raw.headers.get("traceparent")) or uuid4().hex


def _requests(
    accepted: AcceptedDelivery, key: int, trace_id: str, replay: int = 0, by: str = ""
) -> list[Request]:
    suffix = f":replay{replay}" if replay else ""
    context = context_text(accepted.result, **({"replay": replay} if replay else {}))
    return [
        Request(
            tenant_id=accepted.source.tenant_id,
            agent_id=decision.agent_id,
            trigger=Trigger.WEBHOOK,
            context=context,
            requested_by=(by or f"webhook {accepted.source.name}")[:200],
            idempotency_key=f"delivery:{key}:{decision.agent}{suffix}",
            delivery_id=key,
            trace_id=trace_id,
        )
        for decision in accepted.result.matched
    ]


def _with_disabled_agents(
    accepted: AcceptedDelivery, key: int, closed: dict[int, str]
) -> AcceptedDelivery:
    """Stores new decisions for agents that were disabled after the index had been read.

    `closed` has the reason for each agent whose work was refused."""
    decisions = tuple(
        replace(d, reason=d.reason or closed.get(d.agent_id, "")) for d in accepted.result.decisions
    )
    if decisions == accepted.result.decisions:
        return accepted
    result = replace(accepted.result, decisions=decisions)
    if not result.matched:
        reason = "all agents whose filters match are disabled"
        result = replace(result, outcome="unmatched", reason=reason)
    update_result(key, result)
    return replace(accepted, result=result)


# --- reading --------------------------------------------------------------------------------


def headers_of(delivery: Delivery) -> dict[str, str]:
    """The stored headers, with the values of signatures and secrets hidden."""
    return visible_headers(json.loads(delivery.headers), delivery.source.options)


def work_of(delivery: Delivery) -> QuerySet[WorkItem]:
    """The work items of the delivery and of all its replays."""
    return delivery.work_items.select_related("agent").order_by("pk")


# --- replaying ------------------------------------------------------------------------------


def replay(delivery: Delivery, by: str, now: datetime, trace_id: str = "") -> Receipt:
    """Matches a stored delivery against the current filters and queues new work.

    An agent that had work of the delivery before gets new work, too."""
    if delivery.outcome == Delivery.Outcome.REFUSED:
        raise Refused(
            f"{delivery} was refused, and its body was not stored: the sender must send it again"
        )
    row = WebhookSource.objects.select_related("tenant").get(pk=delivery.source_id)
    source = read_source(row, ())
    if source is None:
        raise Refused(
            f"the settings of the source {row.name!r} are invalid: correct its type and options; "
            "the log event webhook.source_unusable has the reason"
        )
    if row.tenant.disabled_at:
        raise Refused("the tenant is disabled: enable it first")
    accepted = match_stored_delivery(delivery, source)
    # Not the trace id of the sender: the replay belongs to the trace of the caller.
    trace_id = trace_id or uuid4().hex
    return in_transaction(lambda: _replay(accepted, delivery.pk, by, now, trace_id))


def match_stored_delivery(delivery: Delivery, source: IndexedSource) -> AcceptedDelivery:
    """The delivery with the result of the current settings and filters; stores nothing."""
    headers = json.loads(delivery.headers)
    raw = RawDelivery(headers, bytes(delivery.body), delivery.delivery_id, delivery.received_at)
    index = SourceIndex((source,), read_subscriptions())
    return match_delivery(index, source, raw, delivery.signed_by)


def _replay(accepted: AcceptedDelivery, key: int, by: str, now: datetime, trace_id: str) -> Receipt:
    row = fetch_one(
        "UPDATE drover_delivery SET replays = replays + 1, replayed_at = %s WHERE id = %s "
        "RETURNING replays",
        [to_database_time(now), key],
    )
    if row is None:
        raise Refused(f"delivery {key} was removed: its history_retention_days are over")
    requested_by = f"{by}, replay {row[0]} of delivery {key}"
    update_result(key, accepted.result)
    requests = _requests(accepted, key, trace_id, row[0], requested_by)
    closed = dispatch.enqueue_many_in_transaction(requests, now)
    result = _with_disabled_agents(accepted, key, closed).result
    detail = f"{by}: delivery {key}, {len(result.matched)} matched"
    tenant_id = accepted.source.tenant_id
    entry = journal.JournalEntry(
        "delivery.replayed", now, tenant_id, detail=detail, trace_id=trace_id, actor=by
    )
    journal.record(entry)
    return receipt_for(result, key)
