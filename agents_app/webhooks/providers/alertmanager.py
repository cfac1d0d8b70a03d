"""Alertmanager of Prometheus and alerting of Grafana: groups of alerts in one format.

Both send a bearer token. Grafana can sign instead: HMAC over the body, or over time and body if the
contact point names a header for the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import filter_on, filter_on_label
from agents_app.webhooks.providers.options import refuse_unknown, text_option
from agents_app.webhooks.providers.provider import MEGABYTE, Provider
from agents_app.webhooks.providers.reading import cut, dig, first, iso, items, text, texts
from agents_app.webhooks.providers.signing import (
    Headers,
    Secrets,
    Signed,
    body_hash,
    is_fresh,
    named_by_token,
    raw,
    signed_by_mac,
)

MAX_ALERTS, MAX_LABELS = 20, 100
ALERT, SEVERITY = "alertname=", "severity="
BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class AlertSignature:
    """The headers of Grafana's signature; their names are settings of a contact point."""

    header: str = "x-grafana-alerting-signature"
    timestamp_header: str = "x-grafana-alerting-timestamp"

    def verify(self, request: Signed, secrets: Secrets, now: datetime) -> str | None:
        given, sent = request.header("authorization"), request.header(self.timestamp_header)
        is_bearer = given[: len(BEARER)].lower() == BEARER
        by_token = named_by_token(secrets, given[len(BEARER) :].strip() if is_bearer else "")
        message = raw(f"{sent}:") + request.body if sent else request.body
        by_signature = signed_by_mac(secrets, message, request.header(self.header))
        if by_signature is None or (sent and not is_fresh(sent, now)):
            return by_token
        return by_signature


def alert_signature(table: Mapping[str, Any]) -> AlertSignature:
    refuse_unknown(table, ("header", "timestamp_header"))
    default = AlertSignature()
    return AlertSignature(
        (text_option(table, "header") or default.header).lower(),
        (text_option(table, "timestamp_header") or default.timestamp_header).lower(),
    )


def parse_alerts(source: str, payload: Any, received_at: datetime) -> Context | None:
    status, alerts = text(payload, "status"), items(payload, "alerts")
    if not status or not isinstance(dig(payload, "alerts"), list):
        return None
    return Context(
        source=source,
        event="alert",
        action=status,
        repo=text(payload, "receiver") or "",
        title=first(text(payload, "title"), _title(payload, alerts)),
        body=_body(payload, alerts),
        url=first(*texts(alerts[:1], "generatorURL"), text(payload, "externalURL")),
        labels=_labels(payload, alerts),
        conclusion=status,
        sender=source,
        timestamp=iso(received_at),
    )


def _title(payload: Any, alerts: list[Any]) -> str:
    common = first(text(payload, "commonLabels", "alertname"), text(payload, "groupKey"))
    return f"{len(alerts)} alerts: {common}" if len(alerts) != 1 else common or "1 alert"


def _labels(payload: Any, alerts: list[Any]) -> tuple[str, ...]:
    """The labels of all alerts and of the group, each `name=value` once."""
    tables = [dig(payload, "commonLabels"), dig(payload, "groupLabels")]
    tables += [dig(alert, "labels") for alert in alerts[:MAX_ALERTS]]
    found = {
        f"{name}={value}": None
        for table in tables
        if isinstance(table, Mapping)
        for name in table
        if isinstance(name, str) and (value := text(table, name)) is not None and text(name)
    }
    return tuple(found)[:MAX_LABELS]


def _body(payload: Any, alerts: list[Any]) -> str | None:
    """One line for each alert; Grafana's own message if there is one."""
    if message := text(payload, "message"):
        return message
    lines = [
        f"{text(alert, 'status') or 'alert'}: {_summary(alert)}" for alert in alerts[:MAX_ALERTS]
    ]
    return cut("\n".join(lines)) or None


def _summary(alert: Any) -> str:
    names = ("summary", "description", "message")
    said = first(*(text(alert, "annotations", name) for name in names))
    return first(said, text(alert, "labels", "alertname")) or "without a description"


def alert_provider(name: str, signature: AlertSignature) -> Provider:
    def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
        del headers
        return parse_alerts(name, payload, received_at)

    return Provider(
        name=name,
        verify=signature.verify,
        # A notification has no id, and the same one is sent again while its alerts fire.
        delivery_id=lambda headers, body: body_hash(body),  # noqa: ARG005
        parse=parse,
        body_limit_bytes=MEGABYTE,
        filters={
            "statuses": filter_on("action"),
            "receivers": filter_on("repo"),
            "alerts": filter_on_label(ALERT),
            "severities": filter_on_label(SEVERITY),
            "labels": filter_on("labels"),
        },
    )


ALERTMANAGER = alert_provider("alertmanager", AlertSignature())
GRAFANA = alert_provider("grafana", AlertSignature())
