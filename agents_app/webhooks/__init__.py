"""The one door to webhooks: signed bytes to context to match; pure, all are told the time."""

from agents_app.webhooks.check import UNSIGNED, Verdict, check
from agents_app.webhooks.configured import provider_for
from agents_app.webhooks.context import Context
from agents_app.webhooks.decide import Decision, Letter, Listener, Reading, decide, payload_of
from agents_app.webhooks.filters import UnknownFilter, unknown_filters
from agents_app.webhooks.match import Match, Miss, match
from agents_app.webhooks.provider import BODY_HASH_WINDOW_SECONDS, Provider
from agents_app.webhooks.providers import PROVIDERS, TRIAL_PROVIDERS
from agents_app.webhooks.reading import Unparseable, read_json
from agents_app.webhooks.shown_headers import shown_headers
from agents_app.webhooks.signing import Signed

__all__ = [
    "BODY_HASH_WINDOW_SECONDS",
    "PROVIDERS",
    "TRIAL_PROVIDERS",
    "UNSIGNED",
    "Context",
    "Decision",
    "Letter",
    "Listener",
    "Match",
    "Miss",
    "Provider",
    "Reading",
    "Signed",
    "UnknownFilter",
    "Unparseable",
    "Verdict",
    "check",
    "decide",
    "match",
    "payload_of",
    "provider_for",
    "read_json",
    "shown_headers",
    "unknown_filters",
]
