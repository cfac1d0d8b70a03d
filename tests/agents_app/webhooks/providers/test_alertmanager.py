"""Notifications of Alertmanager and Grafana as their documentation shows them."""

import pytest

from agents_app.errors import ConfigError
from agents_app.webhooks.providers import (
    PROVIDERS,
    Signed,
    check_signature,
    match_filters,
    provider_for,
    visible_headers,
)
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, body_of, hmac_hex, stamp

ALERTMANAGER, GRAFANA = PROVIDERS["alertmanager"], PROVIDERS["grafana"]
PROBE = {
    "receiver": "sms",
    "status": "firing",
    "alerts": [
        {
            "status": "firing",
            "labels": {
                "alertname": "ProbeFailure",
                "instance": "https://server.example.org",
                "job": "http_checks",
                "severity": "critical",
            },
            "annotations": {
                "description": "Instance https://server.example.org has been down for over 5m.",
                "summary": "BlackBox Probe Failure: https://server.example.org",
            },
            "startsAt": "2026-02-06T13:08:45.828Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://prometheus.example.org:9090/graph?g0.expr=probe_success",
            "fingerprint": "1a30ba71cca2921f",
        }
    ],
    "groupLabels": {"alertname": "ProbeFailure"},
    "commonLabels": {"alertname": "ProbeFailure", "severity": "critical"},
    "commonAnnotations": {},
    "externalURL": "http://prometheus.example.org:9093",
    "version": "4",
    "groupKey": '{}/{severity="critical"}:{alertname="ProbeFailure"}',
    "truncatedAlerts": 0,
}
MEMORY = {
    "receiver": "My Super Webhook",
    "status": "firing",
    "orgId": 1,
    "alerts": [
        {
            "status": "firing",
            "labels": {"alertname": "High memory usage", "team": "blue", "zone": "us-1"},
            "annotations": {"summary": "This alert was triggered for zone us-1"},
            "generatorURL": "https://play.grafana.org/alerting/1afz29v7z/edit",
        },
        {
            "status": "resolved",
            "labels": {"alertname": "High CPU usage", "team": "blue", "zone": "eu-1"},
            "annotations": {},
            "generatorURL": "https://play.grafana.org/alerting/d1rdpdv7k/edit",
        },
    ],
    "groupLabels": {},
    "commonLabels": {"team": "blue"},
    "externalURL": "https://play.grafana.org/",
    "version": "1",
    "groupKey": "{}:{}",
    "title": "[FIRING:2]  (blue)",
    "state": "alerting",
    "message": "**Firing**\n\nLabels:\n - team = blue\n",
}


def parsed(payload, provider=ALERTMANAGER):
    context = provider.parse({}, payload, NOW)
    assert context is not None
    return context


# --- bearer tokens and signatures -----------------------------------------------------------


@pytest.mark.parametrize("provider", [ALERTMANAGER, GRAFANA], ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("given", "accepted"),
    [
        (f"Bearer {SECRET}", True),
        (f"bearer  {SECRET} ", True),
        (SECRET, False),
        (f"Basic {SECRET}", False),
        ("Bearer ", False),
        ("Bearer other", False),
    ],
)
def test_a_bearer_token_is_that_of_the_source(provider, given, accepted):
    request = Signed({"authorization": given}, b"{}")
    assert check_signature(provider, request, {"main": SECRET}, NOW).accepted is accepted


def grafana(body: bytes, sent: str = "") -> Signed:
    message = f"{sent}:".encode() + body if sent else body
    headers = {"x-grafana-alerting-signature": hmac_hex(SECRET, message)}
    return Signed({**headers, **({"x-grafana-alerting-timestamp": sent} if sent else {})}, body)


@pytest.mark.parametrize(
    ("ago", "accepted"), [(None, True), (0, True), (300, True), (301, False), (-301, False)]
)
def test_a_signature_with_a_time_is_accepted_for_five_minutes(ago, accepted):
    request = grafana(body_of(MEMORY), "" if ago is None else stamp(ago))
    assert check_signature(GRAFANA, request, {"main": SECRET}, NOW).accepted is accepted


def test_the_time_of_a_signature_cannot_be_left_out_or_changed():
    request = grafana(body_of(MEMORY), stamp(1000))
    signature = {"x-grafana-alerting-signature": request.headers["x-grafana-alerting-signature"]}
    for headers in (signature, {**signature, "x-grafana-alerting-timestamp": stamp()}):
        forged = Signed(headers, request.body)
        assert not check_signature(GRAFANA, forged, {"main": SECRET}, NOW).accepted


def test_the_headers_of_grafana_are_options():
    own = provider_for("grafana", {"header": "X-Sig", "timestamp_header": "X-Sent"})
    body, sent = body_of(MEMORY), stamp()
    headers = {"x-sig": hmac_hex(SECRET, f"{sent}:".encode() + body), "x-sent": sent}
    assert check_signature(own, Signed(headers, body), {"main": SECRET}, NOW).accepted
    with pytest.raises(ConfigError, match="heder: unknown option; did you mean 'header'"):
        provider_for("grafana", {"heder": "x"})
    with pytest.raises(ConfigError, match="header: unknown option"):
        provider_for("alertmanager", {"header": "x"})


def test_users_do_not_see_tokens_and_signatures():
    shown = visible_headers({"Authorization": "Bearer x", "X-Own": "y"}, {"header": "X-Own"})
    assert shown == {"Authorization": "(not shown)", "X-Own": "(not shown)"}


# --- notifications --------------------------------------------------------------------------


def test_a_notification_has_its_alerts_in_the_context():
    context = parsed(PROBE)
    assert (context.source, context.event, context.action) == ("alertmanager", "alert", "firing")
    assert (context.repo, context.title) == ("sms", "ProbeFailure")
    assert context.body == "firing: BlackBox Probe Failure: https://server.example.org"
    assert (context.url or "").startswith("http://prometheus.example.org:9090/graph")
    assert {"alertname=ProbeFailure", "severity=critical"} <= set(context.labels or ())


def test_a_notification_of_grafana_has_its_title_and_message():
    context = parsed(MEMORY, GRAFANA)
    assert (context.source, context.title) == ("grafana", "[FIRING:2]  (blue)")
    assert (context.body or "").startswith("**Firing**")
    assert "alertname=High CPU usage" in (context.labels or ())


def test_without_a_message_each_alert_has_a_line():
    payload = {**MEMORY, "message": "", "title": ""}
    assert parsed(payload).body == (
        "firing: This alert was triggered for zone us-1\nresolved: High CPU usage"
    )
    assert parsed(payload).title == "2 alerts: {}:{}"


def test_many_alerts_are_shortened():
    alert = {"status": "firing", "labels": {f"l{n}": "x" * 50 for n in range(200)}}
    context = parsed({"status": "firing", "receiver": "r", "alerts": [alert] * 500})
    assert len(context.labels or ()) == 100
    assert len((context.body or "").splitlines()) == 20


@pytest.mark.parametrize("payload", [{}, {"status": "firing"}, {"status": "x", "alerts": {}}, []])
def test_a_payload_without_alerts_is_ignored(payload):
    assert ALERTMANAGER.parse({}, payload, NOW) is None


def test_the_same_notification_may_come_again_later():
    """The hash of the body is the delivery id, which is remembered for minutes only."""
    assert ALERTMANAGER.delivery_id({}, b"a").startswith("sha256:ca978112")
    assert not ALERTMANAGER.unique_bodies


def test_filters_compare_status_receiver_alert_and_labels():
    def matches(payload, **filters) -> bool:
        return match_filters(ALERTMANAGER.filters, filters, parsed(payload)).matched

    assert matches(PROBE, statuses="firing", receivers="sms", alerts="Probe*")
    assert matches(PROBE, severities=["critical", "warning"], labels="job=http_checks")
    assert not matches(PROBE, statuses="resolved")
    assert matches(MEMORY, labels="team=blue") and not matches(MEMORY, severities="critical")
