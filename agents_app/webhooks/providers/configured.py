"""Builds the provider of a source from its type and options."""

from collections.abc import Callable, Mapping
from typing import Any

from agents_app.errors import ConfigError
from agents_app.webhooks.providers.alertmanager import alert_provider, alert_signature
from agents_app.webhooks.providers.generic import generic
from agents_app.webhooks.providers.mintlify import HEADERS, mintlify
from agents_app.webhooks.providers.options import (
    SignatureOptions,
    generic_options,
    refuse_unknown,
    signature_options,
)
from agents_app.webhooks.providers.provider import Provider
from agents_app.webhooks.providers.registry import PROVIDERS, TRIAL_PROVIDERS

_WITH_OPTIONS: dict[str, Callable[[Mapping[str, Any]], Provider]] = {
    "mintlify": lambda table: mintlify(signature_options(table, SignatureOptions(headers=HEADERS))),
    "generic": lambda table: generic(generic_options(table)),
    "grafana": lambda table: alert_provider("grafana", alert_signature(table)),
}


def provider_for(kind: str, options: Mapping[str, Any]) -> Provider:
    """Raises ConfigError with the reason if the type or an option is invalid."""
    known = {**PROVIDERS, **TRIAL_PROVIDERS}
    if kind not in known:
        raise ConfigError(f"type: there is no provider {kind!r}; use one of {', '.join(known)}")
    if kind in _WITH_OPTIONS:
        return _WITH_OPTIONS[kind](options)
    refuse_unknown(options, ())
    return known[kind]
