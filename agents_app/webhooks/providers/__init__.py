"""Webhook providers: signed bytes to a context, and the agents whose filters match.

Belongs here: signatures, payload formats and filters, without tables or clock.
Does not belong here: rows of deliveries (webhooks).
"""

from agents_app.webhooks.providers.check import UNSIGNED, SignatureVerdict, check_signature
from agents_app.webhooks.providers.configured import provider_for
from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.decide import (
    Decision,
    MatchResult,
    RawDelivery,
    Subscription,
    match_subscriptions,
    payload_of,
)
from agents_app.webhooks.providers.filters import UnknownFilter, unknown_filters
from agents_app.webhooks.providers.match import FilterMatch, Miss, match_filters
from agents_app.webhooks.providers.provider import (
    BODY_HASH_WINDOW_SECONDS,
    UNIQUE_BODY_SECONDS,
    Provider,
)
from agents_app.webhooks.providers.reading import Unparseable, read_json
from agents_app.webhooks.providers.registry import PROVIDERS, TRIAL_PROVIDERS
from agents_app.webhooks.providers.shown_headers import HIDDEN, is_credential, visible_headers
from agents_app.webhooks.providers.signing import Signed, mac, raw

__all__ = [
    "BODY_HASH_WINDOW_SECONDS",
    "HIDDEN",
    "PROVIDERS",
    "TRIAL_PROVIDERS",
    "UNIQUE_BODY_SECONDS",
    "UNSIGNED",
    "Context",
    "Decision",
    "FilterMatch",
    "MatchResult",
    "Miss",
    "Provider",
    "RawDelivery",
    "SignatureVerdict",
    "Signed",
    "Subscription",
    "UnknownFilter",
    "Unparseable",
    "check_signature",
    "is_credential",
    "mac",
    "match_filters",
    "match_subscriptions",
    "payload_of",
    "provider_for",
    "raw",
    "read_json",
    "unknown_filters",
    "visible_headers",
]
