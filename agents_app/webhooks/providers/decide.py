"""Matches a delivery against the filters of agents; pure, also used for dry runs."""

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
class Subscription:
    """The webhook triggers of an agent for one source; one matching set of filters is enough."""

    agent_id: int
    agent: str
    filters: tuple[Mapping[str, Any], ...]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the delivery matches an agent; `reason` is empty if it does.

    `misses` has one tuple for each set of filters, with the filters that did not match.
    """

    agent_id: int
    agent: str
    reason: str = ""
    misses: tuple[Misses, ...] = ()

    @property
    def matched(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class MatchResult:
    """The context of a delivery and a decision for each agent; `reason` if no agent matches."""

    outcome: Outcome
    reason: str = ""
    context: Context | None = None
    decisions: tuple[Decision, ...] = ()

    @property
    def matched(self) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.matched)


@dataclass(frozen=True, slots=True)
class RawDelivery:
    """The headers and the body as received, and the time; without the source."""

    headers: Headers
    body: bytes
    delivery_id: str
    received_at: datetime


def match_subscriptions(
    provider: Provider, raw: RawDelivery, subscriptions: tuple[Subscription, ...]
) -> MatchResult:
    payload = payload_of(raw.headers, raw.body)
    if isinstance(payload, Unparseable):
        return MatchResult("unparseable", f"the body is not valid JSON: {payload.reason}")
    context = provider.parse(raw.headers, payload, raw.received_at)
    if context is None:
        return MatchResult("ignored", "the delivery is not an event for agents, for example a ping")
    context = replace(context, delivery=raw.delivery_id)
    decisions = tuple(_decision(provider, each, context) for each in subscriptions)
    if any(decision.matched for decision in decisions):
        return MatchResult("matched", "", context, decisions)
    reason = "the filters of no agent match: see the reason of each agent"
    if not decisions:
        reason = "no agent subscribes to this source"
    return MatchResult("unmatched", reason, context, decisions)


def payload_of(headers: Headers, body: bytes) -> Any | Unparseable:
    """Parses JSON, or a form with JSON in the field `payload`: GitHub can send either.

    A body that begins like JSON is parsed as JSON for any Content-Type: the default of curl is
    that of a form.
    """
    is_form = headers.get("content-type", "").lower().startswith(FORM)
    if not is_form or body.lstrip()[:1] in {b"{", b"["}:
        return read_json(body)
    try:
        fields = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=20)
        (payload,) = fields["payload"]
    except (ValueError, KeyError):
        return Unparseable("a form without a field `payload`")
    return read_json(payload.encode("utf-8", "surrogatepass"))


def _decision(provider: Provider, subscription: Subscription, context: Context) -> Decision:
    sets = tuple(_misses(provider, filters, context) for filters in subscription.filters)
    if all(sets):
        reason = " | ".join("; ".join(map(str, misses)) for misses in sets)
        return Decision(subscription.agent_id, subscription.agent, reason, sets)
    disabled = "" if subscription.enabled else "disabled"
    return Decision(subscription.agent_id, subscription.agent, disabled)


def _misses(provider: Provider, filters: Mapping[str, Any], context: Context) -> Misses:
    # Checked here, because the type of the source is not known when the filters are read.
    unknown = unknown_filters(provider.filters, filters)
    return tuple(unknown) or match_filters(provider.filters, filters, context).misses
