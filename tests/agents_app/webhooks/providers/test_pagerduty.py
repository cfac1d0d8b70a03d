"""Deliveries of PagerDuty as its documentation shows them, reduced to the fields that matter."""

from agents_app.webhooks.providers import PROVIDERS, Signed, check_signature, match_filters
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, body_of, hmac_hex

PAGERDUTY = PROVIDERS["pagerduty"]
INCIDENT = {
    "event": {
        "id": "5ac64822-4adc-4fda-ade0-410becf0de4f",
        "event_type": "incident.priority_updated",
        "resource_type": "incident",
        "occurred_at": "2026-03-01T11:45:22.169Z",
        "agent": {"id": "PLH1HKV", "summary": "Tenex Engineer", "type": "user_reference"},
        "client": {"name": "PagerDuty"},
        "data": {
            "id": "PGR0VU2",
            "type": "incident",
            "html_url": "https://acme.pagerduty.com/incidents/PGR0VU2",
            "number": 2,
            "status": "triggered",
            "title": "A little bump in the road",
            "service": {"id": "PF9KMXH", "summary": "API Service", "type": "service_reference"},
            "assignees": [{"id": "PTUXL6G", "summary": "User 123", "type": "user_reference"}],
            "priority": {"id": "PSO75BM", "summary": "P1", "type": "priority_reference"},
            "urgency": "high",
        },
    }
}
NOTE = {
    "event": {
        "id": "01CH754SM17TWPE2V2H4VPBRO7",
        "event_type": "incident.annotated",
        "resource_type": "incident",
        "occurred_at": "2026-03-01T11:46:22.169Z",
        "agent": None,
        "data": {
            "incident": {
                "html_url": "https://acme.pagerduty.com/incidents/PGR0VU2",
                "id": "PGR0VU2",
                "summary": "A little bump in the road",
                "type": "incident_reference",
            },
            "id": "P2LA89X",
            "content": "I sure am glad we are using PagerDuty!",
            "trimmed": False,
            "type": "incident_note",
        },
    }
}
PING = {
    "event": {
        "id": "01BZ6RCVS5KGHZTSBA1DBRRR77",
        "event_type": "pagey.ping",
        "resource_type": "pagey",
        "occurred_at": "2026-03-01T11:45:22.169Z",
        "data": {"message": "Hello from your friend Pagey!", "type": "ping"},
    }
}


def parsed(payload):
    context = PAGERDUTY.parse({}, payload, NOW)
    assert context is not None
    return context


def test_one_of_several_signatures_is_enough_while_a_secret_changes():
    body = body_of(INCIDENT)
    values = [f"v1={hmac_hex(each, body)}" for each in ("old-one", SECRET)]
    for given in (",".join(values), ", ".join(values), f"v2=x,{values[1]}"):
        request = Signed({"x-pagerduty-signature": given}, body)
        assert check_signature(PAGERDUTY, request, {"main": SECRET}, NOW).signer == "main"


def test_a_signature_of_another_version_is_refused():
    body = body_of(INCIDENT)
    for given in (hmac_hex(SECRET, body), f"v0={hmac_hex(SECRET, body)}", "v1="):
        request = Signed({"x-pagerduty-signature": given}, body)
        assert not check_signature(PAGERDUTY, request, {"main": SECRET}, NOW).accepted


def test_the_delivery_id_is_the_same_for_every_attempt():
    assert PAGERDUTY.delivery_id({"x-webhook-id": "w1"}, b"{}") == "w1"


def test_an_incident_has_all_fields_in_the_context():
    context = parsed(INCIDENT)
    assert (context.event, context.action) == ("incident.priority_updated", "priority_updated")
    assert (context.number, context.title) == (2, "A little bump in the road")
    assert (context.repo, context.assignee) == ("API Service", "User 123")
    assert context.labels == ("priority=P1", "urgency=high")
    assert (context.conclusion, context.sender) == ("triggered", "Tenex Engineer")
    assert context.url == "https://acme.pagerduty.com/incidents/PGR0VU2"
    assert context.timestamp == "2026-03-01T11:45:22.169Z"


def test_a_note_has_the_title_and_address_of_its_incident():
    context = parsed(NOTE)
    assert context.comment == "I sure am glad we are using PagerDuty!"
    assert context.title == "A little bump in the road"
    assert context.url == "https://acme.pagerduty.com/incidents/PGR0VU2"
    assert (context.sender, context.labels) == ("unknown", None)


def test_a_ping_and_a_payload_without_an_event_are_ignored():
    assert PAGERDUTY.parse({}, PING, NOW) is None
    assert PAGERDUTY.parse({}, {"messages": []}, NOW) is None


def test_filters_compare_service_status_priority_and_urgency():
    def matches(payload, **filters) -> bool:
        return match_filters(PAGERDUTY.filters, filters, parsed(payload)).matched

    assert matches(INCIDENT, events="incident.*", services="API *", statuses="triggered")
    assert matches(INCIDENT, priorities=["P1", "P2"], urgencies="high")
    assert not matches(INCIDENT, priorities="P2")
    assert not matches(NOTE, urgencies="high")
