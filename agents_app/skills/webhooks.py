"""Reads webhook sources in config.toml and webhook subscriptions in SKILL.md."""

from collections.abc import Iterable
from typing import Any

from agents_app.errors import ConfigError
from agents_app.names import canonical, mistyped, unknown_field
from agents_app.skills.specs import WebhookSourceSpec, WebhookSpec
from agents_app.skills.tables import Layer, build_spec, excerpt, file_fields
from agents_app.webhooks.providers import (
    PROVIDERS,
    TRIAL_PROVIDERS,
    Provider,
    provider_for,
    unknown_filters,
)

# --- SKILL.md -------------------------------------------------------------------------------


def read_webhooks(value: Any) -> Any:
    """Collect filters, which are written beside `source` or in a table; values are not checked."""
    if not isinstance(value, list):
        return value
    return [_webhook(item) if isinstance(item, dict) else item for item in value]


def _webhook(item: dict[str, Any]) -> dict[str, Any]:
    table = {canonical(key): value for key, value in item.items() if value is not None}
    nested = table.pop("filters", {})
    source = {"source": table.pop("source")} if "source" in table else {}
    if isinstance(nested, dict):
        nested = {**table, **{canonical(key): value for key, value in nested.items()}}
    return {**source, "filters": nested}


def check_filters(
    webhooks: Iterable[WebhookSpec], sources: Iterable[WebhookSourceSpec], layer: Layer
) -> None:
    """Check filters of sources in config.toml; those of other sources are checked later."""
    providers = {source.name: source for source in sources}
    for number, webhook in enumerate(webhooks):
        spec = providers.get(webhook.source)
        provider = _provider(spec) if spec else PROVIDERS.get(webhook.source)
        for unknown in unknown_filters(provider.filters, webhook.filters) if provider else ():
            layer.report(("webhooks", number, unknown.field), str(unknown))


def _provider(spec: WebhookSourceSpec) -> Provider | None:
    try:
        return provider_for(spec.type, spec.options)
    except ConfigError:
        return None  # reported by _check_source


# --- config.toml ----------------------------------------------------------------------------


def read_sources(tables: Any, layer: Layer) -> tuple[WebhookSourceSpec, ...]:
    if not isinstance(tables, dict):
        layer.report(("webhooks",), f"must be a table of sources, not {excerpt(tables)}")
        return ()
    specs = [_webhook_source(name, table, layer) for name, table in tables.items()]
    return tuple(spec for spec in specs if spec)


def _webhook_source(name: str, table: Any, layer: Layer) -> WebhookSourceSpec | None:
    known = file_fields(WebhookSourceSpec).keys() - {"name", "options"}
    if not isinstance(table, dict):
        layer.report(("webhooks", name), f"must be a table, not {excerpt(table)}")
        return None
    values: dict[str, Any] = {"name": name, "options": {}}
    for key, value in table.items():
        if canonical(key) in known:
            values[canonical(key)] = value
        elif mistyped(key, known):
            layer.report(("webhooks", name, key), unknown_field(key, known))
        else:
            values["options"][canonical(key)] = value
    spec = build_spec(WebhookSourceSpec, values, layer, ("webhooks", name))
    if spec:
        _check_source(spec, layer)
    return spec


def _check_source(spec: WebhookSourceSpec, layer: Layer) -> None:
    try:
        provider_for(spec.type, spec.options)
    except ConfigError as error:
        field, _, reason = str(error).partition(": ")
        layer.report(("webhooks", spec.name, field), reason)
    if spec.type in TRIAL_PROVIDERS and not spec.allow_unsigned:
        reason = f"{spec.type!r} does not verify senders; set allow_unsigned = true to permit it"
        layer.report(("webhooks", spec.name, "type"), reason)
