"""Who may send and who listens, read from the rows at once; the rest happens in memory."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import structlog

from agents_app.errors import ConfigError, DroverError
from agents_app.models import Agent, WebhookSecret, WebhookSource
from agents_app.secrets import BrokenSeal, keys, read_secret, reload_keys, unseal, value_of
from agents_app.webhooks.providers import TRIAL_PROVIDERS, Listener, Provider, provider_for

log = structlog.get_logger("drover.webhooks")
Listeners = Mapping[tuple[int, str], tuple[Listener, ...]]


@dataclass(frozen=True, slots=True)
class IndexedSource:
    """A sender that is let in, with all that its signature is checked by."""

    id: int
    tenant_id: int
    name: str
    kind: str
    provider: Provider
    secrets: Mapping[str, str] = field(repr=False)
    allow_unsigned: bool = False


@dataclass(frozen=True, slots=True)
class SourceIndex:
    sources: tuple[IndexedSource, ...]
    listeners: Listeners

    def find(self, kind: str, name: str = "") -> tuple[IndexedSource, ...]:
        """One by its name, or all of the provider, those that let in everybody last."""
        found = [s for s in self.sources if s.kind == kind and name in ("", s.name)]
        return tuple(sorted(found, key=lambda source: not source.secrets))

    def listening(self, source: IndexedSource) -> tuple[Listener, ...]:
        return self.listeners.get((source.tenant_id, source.name), ())


def read_source_index() -> SourceIndex:
    """Without disabled sources and tenants: to a sender these do not exist."""
    rows = WebhookSource.objects.filter(
        disabled_at__isnull=True, removed_at__isnull=True, tenant__disabled_at__isnull=True
    )
    secrets = list(WebhookSecret.objects.filter(revoked_at__isnull=True).order_by("-pk"))
    found = (read_source(row, secrets) for row in rows.order_by("pk"))
    return SourceIndex(tuple(source for source in found if source), read_listeners())


def read_source(row: WebhookSource, secrets: Iterable[WebhookSecret]) -> IndexedSource | None:
    """None if its settings make no sense, which is said in the log."""
    try:
        provider = _provider(row.type, json.dumps(row.options, sort_keys=True))
        if row.type in TRIAL_PROVIDERS and not row.allow_unsigned:
            raise ConfigError("it would let in everybody without being told to")
    except ConfigError as error:
        _complain("webhook.source_unusable", row.name, str(error))
        return None
    named = _secrets(row, secrets)
    return IndexedSource(
        id=row.pk,
        tenant_id=row.tenant_id,
        name=row.name,
        kind=row.type,
        provider=provider,
        secrets={label: text for label, text in named.items() if text},
        # A secret that cannot be found must not open the door.
        allow_unsigned=row.allow_unsigned and not named and not row.credential,
    )


def read_listeners() -> Listeners:
    """The agents of each tenant and source, in the order of their names."""
    found: defaultdict[tuple[int, str], list[Listener]] = defaultdict(list)
    for agent in Agent.objects.exclude(webhooks=[]).order_by("name"):
        by_source: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for trigger in agent.webhooks:
            by_source[trigger["source"]].append(trigger.get("filters", {}))
        for source, filters in by_source.items():
            listener = Listener(agent.pk, agent.name, tuple(filters), agent.enabled)
            found[agent.tenant_id, source].append(listener)
    return {key: tuple(listeners) for key, listeners in found.items()}


@lru_cache(maxsize=256)
def _provider(kind: str, options: str) -> Provider:
    return provider_for(kind, json.loads(options))


# --- secrets --------------------------------------------------------------------------------


def _secrets(row: WebhookSource, kept: Iterable[WebhookSecret]) -> dict[str, str]:
    """All that count now, each by what people call it; empty where it cannot be had."""
    found = {ref: _outside(ref, row.name) for ref in row.secret_refs}
    for secret in kept:
        mine = secret.source_id == row.pk
        shared = secret.tenant_id == row.tenant_id and secret.name == row.credential
        if mine or shared:
            label = secret.name if mine else f"{secret.name} of source {secret.source_id}"
            found[label] = _opened(secret, row.name)
    if row.credential and (value := _credential(row)):
        found[f"credential {row.credential}"] = value
    return found


def _credential(row: WebhookSource) -> str:
    """What runs are given under this name may also be what the sender signs with."""
    try:
        return value_of(row.tenant_id, row.credential)
    except DroverError as error:
        _complain("webhook.secret_missing", row.name, str(error))
        return ""


def _outside(ref: str, source: str) -> str:
    text = read_secret(ref)
    if not text:
        _complain("webhook.secret_missing", source, f"{ref} is not there or empty")
    return text


def _opened(secret: WebhookSecret, source: str) -> str:
    what = (secret.sealed, secret.tenant_id, secret.name)
    try:
        with contextlib.suppress(BrokenSeal):
            return _unsealed(keys(), *what)
        return _unsealed(reload_keys(), *what)
    except (BrokenSeal, ConfigError) as error:
        _complain("webhook.secret_missing", source, str(error))
        return ""


_unsealed = lru_cache(maxsize=1024)(unseal)


@lru_cache(maxsize=1024)
def _complain(event: str, source: str, error: str) -> None:
    """Once, although it is found again every second."""
    if event == "webhook.source_unusable":
        log.warning("webhook.source_unusable", source=source, error=error)
    else:
        log.warning("webhook.secret_missing", source=source, error=error)
