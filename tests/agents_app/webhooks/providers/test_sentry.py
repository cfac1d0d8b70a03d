"""Deliveries of Sentry, reduced to the fields that Drover reads."""

from agents_app.webhooks.providers import PROVIDERS
from tests.agents_app.webhooks.providers.signing import NOW

SENTRY = PROVIDERS["sentry"]


def parsed(resource, payload):
    return SENTRY.parse({"sentry-hook-resource": resource}, payload, NOW)


def test_an_event_alert_has_the_fields_of_its_event():
    event = {"title": "KeyError", "web_url": "https://s/e/1", "message": "'x'"}
    payload = {"action": "triggered", "data": {"event": event, "triggered_rule": "Often"}}
    context = parsed("event_alert", payload)
    assert (context.title, context.url, context.body) == ("KeyError", "https://s/e/1", "'x'")


def test_the_repo_of_an_alert_is_the_name_of_its_rule():
    data = {"event": {"project": {"slug": "web"}}, "triggered_rule": "Often"}
    assert parsed("event_alert", {"action": "triggered", "data": data}).repo == "Often"


def test_an_alert_without_a_rule_has_the_project_if_the_payload_names_one():
    payload = {"action": "triggered", "data": {"event": {"project": {"slug": "web"}}}}
    assert parsed("event_alert", payload).repo == "web"


def test_a_delivery_without_resource_is_ignored():
    assert SENTRY.parse({}, {"action": "created"}, NOW) is None


def test_data_of_another_shape_leaves_the_fields_empty():
    context = parsed("issue", {"action": 5, "data": ["x"], "actor": "me"})
    assert context.as_dict().keys() == {"source", "event", "repo", "sender", "timestamp"}


def test_the_delivery_id_is_the_request_id():
    assert SENTRY.delivery_id({"request-id": "r1"}, b"{}") == "r1"
