"""Deliveries of GitLab as its documentation shows them, reduced to the fields that matter."""

import pytest

from agents_app.webhooks.providers import (
    PROVIDERS,
    Signed,
    check_signature,
    match_filters,
    visible_headers,
)
from tests.agents_app.webhooks.providers.signing import NOW, SECRET, body_of, stamp, standard

GITLAB = PROVIDERS["gitlab"]
PROJECT = {
    "id": 1,
    "name": "Gitlab Test",
    "web_url": "http://example.com/gitlabhq/gitlab-test",
    "namespace": "GitlabHQ",
    "path_with_namespace": "gitlabhq/tools/gitlab-test",
    "default_branch": "master",
}
USER = {"id": 1, "name": "Administrator", "username": "root", "email": "admin@example.com"}
MERGE_REQUEST = {
    "object_kind": "merge_request",
    "event_type": "merge_request",
    "user": USER,
    "project": PROJECT,
    "object_attributes": {
        "id": 99,
        "iid": 1,
        "target_branch": "master",
        "source_branch": "ms-viewport",
        "author_id": 51,
        "title": "MS-Viewport",
        "state": "opened",
        "description": "Fits the viewport",
        "url": "http://example.com/diaspora/merge_requests/1",
        "action": "open",
    },
    "labels": [{"id": 206, "title": "API", "type": "ProjectLabel"}, {"id": 207}],
    "assignees": [{"id": 6, "name": "User1", "username": "user1"}],
    "reviewers": [{"id": 6, "name": "User1", "username": "user1"}],
}
NOTE = {
    "object_kind": "note",
    "event_type": "note",
    "user": USER,
    "project": PROJECT,
    "object_attributes": {
        "id": 1241,
        "note": "Hello world",
        "noteable_type": "Issue",
        "url": "http://example.com/gitlab-org/gitlab-test/issues/17#note_1241",
        "action": "create",
    },
    "issue": {"id": 92, "iid": 17, "title": "test", "labels": [{"id": 25, "title": "Afterpod"}]},
}
PUSH = {
    "object_kind": "push",
    "event_name": "push",
    "before": "95790bf891e76fee5e1747ab589903a6a1f80f22",
    "ref": "refs/heads/master",
    "user_id": 4,
    "user_name": "John Smith",
    "user_username": "jsmith",
    "project": PROJECT,
    "commits": [
        {"id": "b6568db1", "message": "Update Catalan translation", "title": "Update Catalan"},
        {"id": "da156088", "message": "fixed readme\n", "title": "fixed readme"},
    ],
    "total_commits_count": 4,
}
PIPELINE = {
    "object_kind": "pipeline",
    "object_attributes": {
        "id": 31,
        "iid": 3,
        "name": "Pipeline for branch: master",
        "ref": "master",
        "status": "failed",
        "url": "http://example.com/gitlab-org/gitlab-test/-/pipelines/31",
    },
    "merge_request": {"id": 1, "iid": 12, "title": "Test"},
    "user": USER,
    "project": PROJECT,
    "commit": {"id": "bcbb5ec3", "title": "test"},
}
JOB = {
    "object_kind": "build",
    "ref": "gitlab-script-trigger",
    "build_id": 1977,
    "build_name": "test",
    "build_status": "running",
    "project_id": 380,
    "project_name": "gitlab-org / gitlab-test",
    "user": USER,
}
RELEASE = {
    "object_kind": "release",
    "name": "v1.1",
    "tag": "v1.1",
    "description": "v1.1 has been released",
    "url": "https://example.com/gitlab-org/release-webhook-example/-/releases/v1.1",
    "action": "create",
    "project": PROJECT,
}


def parsed(payload):
    context = GITLAB.parse({"x-gitlab-event": "any"}, payload, NOW)
    assert context is not None
    return context


def matches(payload, **filters) -> bool:
    return match_filters(GITLAB.filters, filters, parsed(payload)).matched


# --- the secret token -----------------------------------------------------------------------


def with_token(token: str) -> Signed:
    return Signed({"x-gitlab-token": token}, b"{}")


@pytest.mark.parametrize(
    ("token", "signer"), [(SECRET, "main"), ("old-token", "old"), (SECRET[:-1], None), ("", None)]
)
def test_the_secret_token_is_that_of_the_source(token, signer):
    secrets = {"old": "old-token", "main": SECRET}
    assert check_signature(GITLAB, with_token(token), secrets, NOW).signer == signer


def test_a_signature_is_accepted_for_five_minutes_and_a_token_beside_it_at_any_time():
    key, body = SECRET.encode(), body_of(PUSH)
    old = standard(body, key, stamp(301))
    assert check_signature(GITLAB, standard(body, key, stamp(300)), {"s": SECRET}, NOW).accepted
    assert not check_signature(GITLAB, old, {"s": SECRET}, NOW).accepted
    both = Signed({**old.headers, "x-gitlab-token": "token-of-it"}, body)
    assert check_signature(GITLAB, both, {"t": "token-of-it"}, NOW).signer == "t"


def test_users_do_not_see_the_token():
    shown = visible_headers({"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Push Hook"}, {})
    assert shown == {"X-Gitlab-Token": "(not shown)", "X-Gitlab-Event": "Push Hook"}


def test_the_delivery_id_is_the_same_for_every_attempt():
    """The UUID of an event does not serve: events caused by a webhook share it."""
    headers = {"idempotency-key": "f5e5f430", "x-gitlab-event-uuid": "13792a34"}
    assert GITLAB.delivery_id(headers, b"{}") == "f5e5f430"
    assert GITLAB.delivery_id({"x-gitlab-event-uuid": "1"}, b"a").startswith("sha256:ca978112")


# --- events ---------------------------------------------------------------------------------


def test_a_merge_request_has_all_fields_in_the_context():
    context = parsed(MERGE_REQUEST)
    assert (context.event, context.action, context.number) == ("merge_request", "open", 1)
    assert (context.repo, context.branch) == ("gitlabhq/tools/gitlab-test", "ms-viewport")
    assert (context.title, context.body) == ("MS-Viewport", "Fits the viewport")
    assert (context.labels, context.assignee, context.sender) == (("API",), "user1", "root")
    assert context.url == "http://example.com/diaspora/merge_requests/1"


def test_a_comment_has_the_number_title_and_labels_of_its_issue():
    context = parsed(NOTE)
    assert (context.number, context.title, context.labels) == (17, "test", ("Afterpod",))
    assert (context.comment, context.author, context.action) == ("Hello world", "root", "create")


def test_a_comment_on_a_commit_has_its_message_as_the_title():
    payload = {**NOTE, "issue": None, "commit": {"message": "Add submodule"}}
    assert (parsed(payload).title, parsed(payload).number) == ("Add submodule", None)


def test_a_push_has_the_branch_and_the_last_commit():
    context = parsed(PUSH)
    assert (context.branch, context.title, context.author) == ("master", "fixed readme", "jsmith")
    tag = parsed({**PUSH, "object_kind": "tag_push", "ref": "refs/tags/v1.0.0", "commits": []})
    assert (tag.event, tag.branch, tag.title) == ("tag_push", "refs/tags/v1.0.0", "push")


def test_a_pipeline_has_a_conclusion_when_it_has_ended():
    context = parsed(PIPELINE)
    assert (context.conclusion, context.branch, context.number) == ("failed", "master", 12)
    assert context.title == "Pipeline for branch: master"
    running = {**PIPELINE, "object_attributes": {"status": "running", "ref": "master"}}
    assert parsed(running).as_dict()["conclusion"] is None


def test_a_job_names_its_project_by_text():
    context = parsed(JOB)
    assert (context.event, context.title, context.action) == ("build", "test", "running")
    assert context.repo == "gitlab-org/gitlab-test"


def test_other_events_have_what_their_payload_has():
    context = parsed(RELEASE)
    assert (context.event, context.action, context.title) == ("release", "create", "v1.1")
    assert context.body == "v1.1 has been released"
    assert parsed({"event_name": "project_create", "name": "x"}).event == "project_create"


def test_a_payload_without_an_event_is_ignored():
    assert GITLAB.parse({"x-gitlab-event": "Push Hook"}, {"ref": "x"}, NOW) is None


# --- filters --------------------------------------------------------------------------------


def test_filters_compare_project_group_branch_and_labels():
    assert matches(MERGE_REQUEST, projects="gitlabhq/tools/*", labels=["API"], actions="open")
    assert matches(MERGE_REQUEST, groups="gitlabhq/tools", branches="ms-*", assignee="user1")
    assert not matches(MERGE_REQUEST, groups="gitlabhq")
    assert not matches(MERGE_REQUEST, not_labels=["API"])
    assert matches(PIPELINE, conclusions=["failed"])
    assert not matches(PIPELINE, conclusions="success")
