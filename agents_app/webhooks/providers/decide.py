"""Whom a delivery concerns and what they are told; pure, so a dry run says what would happen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from urllib.parse import parse_qs

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import UnknownFilter, unknown_filters
from agents_app.webhooks.providers.match import Miss, match_filters
from agents_app.webhooks.providers.provider import Provider
from agents_app.webhooks.providers.reading import Unparseable, read_json
from agents_app.webhooks.providers.signing import Headers

Outcome = Literal["matched", "unmatched", "ignored", "unparseable"]
Misses = tuple[Miss | UnknownFilter, ...]
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Listener:
    """An agent that asked for a source's deliveries; one of its sets of filters is enough."""

    agent_id: int
    agent: str
    filters: tuple[Mapping[str, Any], ...]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` says why it is not for the agent; `misses` say it filter by filter.

    There is one tuple of them for each set of filters: the agent has it if one set is met.
    """

    agent_id: int
    agent: str
    reason: str = ""
    misses: tuple[Misses, ...] = ()

    @property
    def matched(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Reading:
    """What a delivery was understood as; `reason` is for deliveries that concern nobody."""

    outcome: Outcome
    reason: str = ""
    context: Context | None = None
    decisions: tuple[Decision, ...] = ()

    @property
    def matched(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.matched)


@dataclass(frozen=True, slots=True)
class RawDelivery:
    """A delivery as it came and when, without who sent it."""

    headers: Headers
    body: bytes
    delivery_id: str
    received_at: datetime


def match_listeners(
    provider: Provider, letter: RawDelivery, listeners: tuple[Listener, ...]
) -> Reading:
    payload = payload_of(letter.headers, letter.body)
    if isinstance(payload, Unparseable):
        return Reading("unparseable", f"the body is no JSON: {payload.reason}")
    context = provider.parse(letter.headers, payload, letter.received_at)
    if context is None:
        return Reading("ignored", "no event that agents are told of, such as a ping")
    context = replace(context, delivery=letter.delivery_id)
    decisions = tuple(_decision(provider, listener, context) for listener in listeners)
    if any(decision.matched for decision in decisions):
        return Reading("matched", "", context, decisions)
    said = "its filters leave it out: see the reason of each agent"
    return Reading("unmatched", said if decisions else "no agent listens", context, decisions)


def payload_of(headers: Headers, body: bytes) -> Any | Unparseable:
    """JSON, or a form with the JSON in its field `payload`: GitHub offers both.

    What looks like JSON is JSON whatever the header says: curl calls everything a form.
    """
    is_form = headers.get("content-type", "").lower().startswith(FORM)
    if not is_form or body.lstrip()[:1] in {b"{", b"["}:
        return read_json(body)
    try:
        fields = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=20)
        (written,) = fields["payload"]
    except (ValueError, KeyError):
        return Unparseable("a form without a field `payload`")
    return read_json(written.encode("utf-8", "surrogatepass"))


def _decision(provider: Provider, listener: Listener, context: Context) -> Decision:
    sets = tuple(_misses(provider, filters, context) for filters in listener.filters)
    if all(sets):
        reason = " | ".join("; ".join(map(str, misses)) for misses in sets)
        return Decision(listener.agent_id, listener.agent, reason, sets)
    disabled = "" if listener.enabled else "disabled"
    return Decision(listener.agent_id, listener.agent, disabled)


def _misses(provider: Provider, filters: Mapping[str, Any], context: Context) -> Misses:
    # Not refused when it was read, because nobody knew the source's type then.
    unknown = unknown_filters(provider.filters, filters)
    return tuple(unknown) or match_filters(provider.filters, filters, context).misses
