"""Deliveries of Jira as its documentation shows them, reduced to the fields that matter."""

from agents_app.webhooks.providers import PROVIDERS, Signed, check_signature, match_filters
from tests.agents_app.webhooks.providers.signing import NOW, body_of

JIRA = PROVIDERS["jira"]
SITE = "https://your-domain.atlassian.net"
USER = {"accountId": "99:27935d01", "displayName": "Bryan Rollins", "active": True}
ISSUE = {
    "timestamp": 1772366400000,
    "webhookEvent": "jira:issue_updated",
    "issue_event_type_name": "issue_generic",
    "user": USER,
    "issue": {
        "id": "99291",
        "self": f"{SITE}/rest/api/2/issue/99291",
        "key": "JRA-20002",
        "fields": {
            "summary": "I feel the need for speed",
            "description": "Make the issue nav load 10x faster",
            "labels": ["UI", "dialogue", "move"],
            "project": {"id": "10", "key": "JRA", "name": "Jira"},
            "status": {"name": "In Progress"},
            "reporter": {"accountId": "1", "displayName": "Ann"},
            "creator": {"accountId": "2", "displayName": "Bob"},
            "assignee": {"accountId": "3", "displayName": "Dee", "emailAddress": "d@x.io"},
        },
    },
    "changelog": {
        "id": 10124,
        "items": [{"field": "summary", "fromString": "old", "toString": "new"}],
    },
}
COMMENT = {
    "timestamp": 1772366400000,
    "webhookEvent": "comment_created",
    "comment": {
        "id": "252789",
        "self": f"{SITE}/rest/api/2/issue/10148/comment/252789",
        "author": {"accountId": "9", "displayName": "Joe"},
        "body": "Just in time for AtlasCamp!",
    },
    "issue": {
        "id": "99291",
        "self": f"{SITE}/rest/api/2/issue/99291",
        "key": "JRA-20002",
        "fields": {"summary": "I feel the need for speed", "project": {"key": "JRA"}},
    },
}


def parsed(payload):
    context = JIRA.parse({}, payload, NOW)
    assert context is not None
    return context


def test_the_example_of_the_documentation_is_verified():
    """The example of Atlassian's page about webhooks and of WebSub."""
    secret, body = "It's a Secret to Everybody", b"Hello World!"
    value = "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"
    request = Signed({"x-hub-signature": value}, body)
    assert check_signature(JIRA, request, {"main": secret}, NOW).signer == "main"
    other = Signed({"x-hub-signature": value.replace("sha256=", "sha1=")}, body)
    assert not check_signature(JIRA, other, {"main": secret}, NOW).accepted


def test_the_delivery_id_is_the_same_for_every_attempt():
    headers = {"x-atlassian-webhook-identifier": "j1", "x-atlassian-webhook-retry": "2"}
    assert JIRA.delivery_id(headers, body_of(ISSUE)) == "j1"


def test_an_issue_has_all_fields_in_the_context():
    context = parsed(ISSUE)
    assert (context.event, context.action) == ("jira:issue_updated", "updated")
    assert (context.repo, context.number) == ("JRA", 20002)
    assert context.title == "I feel the need for speed"
    assert context.body == "Make the issue nav load 10x faster"
    assert context.url == f"{SITE}/browse/JRA-20002"
    assert context.labels == ("UI", "dialogue", "move")
    assert (context.author, context.assignee, context.sender) == ("Ann", "d@x.io", "Bryan Rollins")
    assert context.conclusion == "In Progress"


def test_a_comment_has_the_fields_of_its_issue_and_its_author_as_the_sender():
    context = parsed(COMMENT)
    assert (context.event, context.action) == ("comment_created", "created")
    assert (context.comment, context.sender) == ("Just in time for AtlasCamp!", "Joe")
    assert (context.repo, context.number) == ("JRA", 20002)


def test_a_document_of_atlassian_is_json():
    document = {"type": "doc", "version": 1, "content": [{"type": "paragraph"}]}
    issue = {**ISSUE["issue"], "fields": {"description": document}}
    assert '"paragraph"' in (parsed({**ISSUE, "issue": issue}).body or "")


def test_a_key_of_another_form_has_no_number():
    for key in ("JRA", "", "JRA-²", "JRA-" + "9" * 40):
        assert parsed({**ISSUE, "issue": {"key": key}}).number is None


def test_a_sprint_has_its_name():
    payload = {"webhookEvent": "sprint_started", "sprint": {"id": 4, "name": "Sprint 3"}}
    context = parsed(payload)
    assert (context.title, context.action, context.repo) == ("Sprint 3", "started", "")


def test_a_payload_without_an_event_is_ignored():
    assert JIRA.parse({}, {"issue": {}}, NOW) is None


def test_filters_compare_event_project_status_and_labels():
    def matches(payload, **filters) -> bool:
        return match_filters(JIRA.filters, filters, parsed(payload)).matched

    assert matches(ISSUE, events="jira:issue_*", projects="JRA", labels="UI")
    assert matches(ISSUE, statuses=["In Progress"], assignee="d@x.io", author="Ann")
    assert not matches(ISSUE, not_labels="UI")
    assert not matches(COMMENT, statuses="In Progress")
