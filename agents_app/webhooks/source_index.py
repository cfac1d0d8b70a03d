"""Reads all webhook sources, their secrets and the subscriptions of agents into memory."""

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import structlog

from agents_app.errors import ConfigError, DroverError
from agents_app.models import Agent, WebhookSecret, WebhookSource
from agents_app.secrets import BrokenSeal, keys, read_secret, reload_keys, unseal, value_of
from agents_app.webhooks.providers import TRIAL_PROVIDERS, Provider, Subscription, provider_for

log = structlog.get_logger("drover.webhooks")
Subscriptions = Mapping[tuple[int, str], tuple[Subscription, ...]]


@dataclass(frozen=True, slots=True)
class IndexedSource:
    """A webhook source with its provider and the secrets that verify its signatures."""

    id: int
    tenant_id: int
    name: str
    kind: str
    provider: Provider
    secrets: Mapping[str, str] = field(repr=False)
    allow_unsigned: bool = False

    @property
    def work(self) -> Counter[str]:
        """How often a signature of the body is computed, by the stand-in of the secret."""
        if not self.provider.signs_body:
            return Counter()
        return Counter(map(self.provider.stand_in, self.secrets.values()))


@dataclass(frozen=True, slots=True)
class SourceIndex:
    sources: tuple[IndexedSource, ...]
    subscriptions: Subscriptions
    _most_work: dict[str, Counter[str]] = field(default_factory=dict, repr=False, compare=False)

    def find(self, kind: str, name: str = "") -> tuple[IndexedSource, ...]:
        """The source with the name, or all sources of the provider, those without secrets last.

        Of several tenants at one address, only the oldest may accept unsigned deliveries:
        another tenant must not get its deliveries by a source of the same name."""
        found = [s for s in self.sources if s.kind == kind and name in ("", s.name)]
        oldest = min((s.tenant_id for s in found), default=0)
        found = [s for s in found if s.tenant_id == oldest or not s.allow_unsigned]
        return tuple(sorted(found, key=lambda source: not source.secrets))

    def most_work(self, kind: str) -> Counter[str]:
        """The largest work of one source of the provider, for each stand-in."""
        if kind in self._most_work:
            return self._most_work[kind]
        most: Counter[str] = Counter()
        for source in self.sources:
            if source.kind == kind:
                most |= source.work
                self._most_work[kind] = most  # not for other kinds: an address may name any
        return most

    def subscriptions_of(self, source: IndexedSource) -> tuple[Subscription, ...]:
        return self.subscriptions.get((source.tenant_id, source.name), ())


def read_source_index() -> SourceIndex:
    """Leaves out disabled sources and sources of disabled tenants: senders get the
    same answer as for sources that do not exist."""
    rows = WebhookSource.objects.select_related("tenant").filter(
        disabled_at__isnull=True, removed_at__isnull=True, tenant__disabled_at__isnull=True
    )
    secrets = list(WebhookSecret.objects.filter(revoked_at__isnull=True).order_by("-pk"))
    found = (read_source(row, secrets) for row in rows.order_by("pk"))
    return SourceIndex(tuple(source for source in found if source), read_subscriptions())


def read_source(row: WebhookSource, secrets: Iterable[WebhookSecret]) -> IndexedSource | None:
    """None if the settings of the source are invalid; the reason is logged."""
    try:
        provider = _provider(row.type, json.dumps(row.options, sort_keys=True))
        if row.type in TRIAL_PROVIDERS and not row.allow_unsigned:
            raise ConfigError(
                f"the provider {row.type} checks no signature: it needs allow_unsigned"
            )
    except ConfigError as error:
        _warn_once("webhook.source_unusable", row.name, str(error))
        return None
    named = _secrets(row, secrets)
    return IndexedSource(
        id=row.pk,
        tenant_id=row.tenant_id,
        name=row.name,
        kind=row.type,
        provider=provider,
        secrets={label: text for label, text in named.items() if text},
        allow_unsigned=row.allow_unsigned and _is_unsigned(row, named),
    )


def _is_unsigned(row: WebhookSource, secrets: Mapping[str, str]) -> bool:
    """A provider for trials checks no signature, whatever secrets the source has. Another source
    whose secret cannot be read must not accept unsigned requests."""
    return row.type in TRIAL_PROVIDERS or not (secrets or row.credential)


def read_subscriptions() -> Subscriptions:
    """The subscriptions by tenant and name of the source, in the order of the agents' names."""
    found: defaultdict[tuple[int, str], list[Subscription]] = defaultdict(list)
    for agent in Agent.objects.exclude(webhooks=[]).order_by("name"):
        by_source: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for trigger in agent.webhooks:
            by_source[trigger["source"]].append(trigger.get("filters", {}))
        for source, filters in by_source.items():
            subscription = Subscription(agent.pk, agent.name, tuple(filters), agent.enabled)
            found[agent.tenant_id, source].append(subscription)
    return {key: tuple(subscriptions) for key, subscriptions in found.items()}


@lru_cache(maxsize=256)
def _provider(kind: str, options: str) -> Provider:
    return provider_for(kind, json.loads(options))


# --- secrets --------------------------------------------------------------------------------


def _secrets(row: WebhookSource, stored: Iterable[WebhookSecret]) -> dict[str, str]:
    """All valid secrets by their labels; the value is empty if a secret cannot be read."""
    found = {ref: _referenced_secret(ref, row) for ref in row.secret_refs}
    for secret in stored:
        own = secret.source_id == row.pk
        shared = secret.tenant_id == row.tenant_id and secret.name == row.credential
        if own or shared:
            label = secret.name if own else f"{secret.name} of source {secret.source_id}"
            found[label] = _stored_secret(secret, row.name)
    if row.credential and (value := _credential_value(row)):
        found[f"credential {row.credential}"] = value
    return found


def _credential_value(row: WebhookSource) -> str:
    """The value of the credential of the source, which runs receive under the same name."""
    try:
        return value_of(row.tenant_id, row.credential)
    except DroverError as error:
        _warn_once("webhook.secret_missing", row.name, str(error))
        return ""


def _referenced_secret(ref: str, row: WebhookSource) -> str:
    text = read_secret(ref, row.tenant)
    if not text:
        _warn_once("webhook.secret_missing", row.name, f"{ref} is missing or empty")
    return text


def _stored_secret(secret: WebhookSecret, source: str) -> str:
    sealed = (secret.sealed, secret.tenant_id, secret.name)
    try:
        with contextlib.suppress(BrokenSeal):
            return _unsealed(keys(), *sealed)
        return _unsealed(reload_keys(), *sealed)
    except (BrokenSeal, ConfigError) as error:
        _warn_once("webhook.secret_missing", source, str(error))
        return ""


_unsealed = lru_cache(maxsize=1024)(unseal)


@lru_cache(maxsize=1024)
def _warn_once(event: str, source: str, error: str) -> None:
    """Logs each problem once, although the index is read every second."""
    if event == "webhook.source_unusable":
        log.warning("webhook.source_unusable", source=source, error=error)
    else:
        log.warning("webhook.secret_missing", source=source, error=error)
