"""No function of a provider raises an error for any input."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_app.webhooks.providers import (
    PROVIDERS,
    TRIAL_PROVIDERS,
    Context,
    Signed,
    check_signature,
    match_filters,
    read_json,
)
from tests.agents_app.webhooks.providers.signing import NOW

EVERY = {**PROVIDERS, **TRIAL_PROVIDERS}
HEADERS = [
    "x-hub-signature-256",
    "x-github-event",
    "x-github-delivery",
    "sentry-hook-signature",
    "sentry-hook-resource",
    "linear-signature",
    "mintlify-signature",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-signature-ed25519",
    "x-signature-timestamp",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-twitter-webhooks-signature",
    "x-gitlab-token",
    "x-hub-signature",
    "x-pagerduty-signature",
    "stripe-signature",
    "authorization",
    "x-grafana-alerting-signature",
    "x-grafana-alerting-timestamp",
]
# Keys that the parsers read, mixed with random ones.
WORDS = [
    *("action", "type", "data", "event", "issue", "pull_request", "comment", "review", "labels"),
    *("name", "user", "login", "repository", "full_name", "workflow_run", "pull_requests", "ref"),
    *("object_kind", "object_attributes", "iid", "project", "commits", "build_status", "assignees"),
    *("webhookEvent", "fields", "key", "self", "description", "timestamp", "event_type", "object"),
    *("occurred_at", "assignees", "priority", "created", "related_object", "livemode", "alerts"),
    *("commonLabels", "annotations", "generatorURL", "receiver", "message", "alertname"),
    *("organizationId", "member", "options", "value", "item", "channel", "status", "error"),
]
VALUES = ["issues", "push", "workflow_run", "event_alert", "Issue", "Comment", "event_callback"]
VALUES += ["jira:issue_created", "incident.triggered", "v2.core.event", "firing", "2020-01-01Z"]
VALUES += ["merge_request", "note", "pipeline", "build"]
texts = st.one_of(st.sampled_from(VALUES), st.text(), st.characters(categories=["Cs"]))
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
keys = st.one_of(st.sampled_from(WORDS), st.text(max_size=3))
payloads = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=12,
)
headers = st.dictionaries(st.sampled_from(HEADERS), texts, max_size=6)
calmly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def token_of(name, headers):
    """The secret that a request contains, of providers that send it as it is."""
    return (headers.get("x-gitlab-token") or None) if name == "gitlab" else None


@pytest.mark.parametrize("name", sorted(EVERY))
@calmly
@given(headers=headers, body=st.binary(max_size=200), secrets=st.dictionaries(texts, texts))
def test_checking_a_request_never_raises(name, headers, body, secrets):
    verdict = check_signature(EVERY[name], Signed(headers, body, "x"), secrets, NOW)
    assert verdict.accepted is (name == "test" or token_of(name, headers) in secrets.values())
    identity = EVERY[name].delivery_id(headers, body)
    assert 0 < len(identity) <= 200
    assert identity.isascii()


@pytest.mark.parametrize("name", sorted(EVERY))
@calmly
@given(headers=headers, payload=payloads)
def test_parsing_a_payload_never_raises(name, headers, payload):
    EVERY[name].answer(payload)
    context = EVERY[name].parse(headers, payload, NOW)
    if context is not None:
        assert isinstance(context, Context)
        str(context.as_dict()).encode()
        match_filters(EVERY[name].filters, {"events": "*", "not_sender": ["?"]}, context)


@calmly
@given(body=st.binary(max_size=300))
def test_reading_bytes_never_raises(body):
    read_json(body)
