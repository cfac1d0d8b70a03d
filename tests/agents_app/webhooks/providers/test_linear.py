"""Deliveries of Linear, reduced to the fields that Drover reads."""

from agents_app.webhooks.providers import PROVIDERS
from tests.agents_app.webhooks.providers.signing import NOW

LINEAR = PROVIDERS["linear"]
ISSUE = {
    "number": 4,
    "title": "Crash",
    "description": "steps",
    "url": "https://linear.app/acme/issue/ENG-4",
    "creator": {"email": "c@x.io"},
    "assignee": {"email": "d@x.io", "name": "Dee"},
    "labels": [{"name": "bug"}, {"id": "nameless"}],
}
COMMON = {
    "action": "create",
    "organizationId": "o1",
    "actor": {"email": "a@x.io", "name": "Ann", "type": "user"},
    "webhookTimestamp": 1772366400000,
}


def parsed(**payload):
    return LINEAR.parse({}, {**COMMON, **payload}, NOW)


def test_an_issue_has_all_fields_in_the_context():
    context = parsed(type="Issue", data=ISSUE)
    assert (context.event, context.repo, context.sender) == ("issues", "o1", "a@x.io")
    assert (context.number, context.title, context.body) == (4, "Crash", "steps")
    assert (context.author, context.assignee, context.labels) == ("c@x.io", "d@x.io", ("bug",))


def test_the_organization_may_be_that_of_the_team():
    payload = {"action": "create", "type": "Issue"}
    team = {"id": "t1", "organization": {"id": "o2"}}
    assert LINEAR.parse({}, {**payload, "data": {**ISSUE, "team": team}}, NOW).repo == "o2"
    assert parsed(type="Issue", data={**ISSUE, "team": team}).repo == "o1"
    assert LINEAR.parse({}, {**payload, "data": {**ISSUE, "team": {"id": "t1"}}}, NOW) is None


def test_the_sender_created_or_updated_the_object():
    created, updated = {"email": "new@x.io"}, {"name": "Uma"}
    by_both = parsed(type="Issue", data=ISSUE, createdBy=created, updatedBy=updated)
    assert by_both.sender == "new@x.io"
    assert parsed(type="Issue", data=ISSUE, updatedBy=updated).sender == "Uma"


def test_a_comment_has_the_fields_of_its_issue():
    context = parsed(type="Comment", data={"body": "hey", "issue": ISSUE})
    assert (context.event, context.comment, context.number) == ("issue_comment", "hey", 4)
    assert context.url == "https://linear.app/acme/issue/ENG-4"
    assert context.body is None


def test_an_object_with_a_name_has_it_as_the_title():
    assert parsed(type="Project", data={"name": "Q3"}).title == "Q3"
    assert parsed(type="Reaction", data={"id": "r"}).title == "create"


def test_the_delivery_id_is_in_the_header_of_linear():
    assert LINEAR.delivery_id({"linear-delivery": "d1"}, b"{}") == "d1"
