"""Deliveries of GitHub, reduced to the fields that Drover reads."""

import pytest

from agents_app.webhooks.providers import PROVIDERS
from tests.agents_app.webhooks.providers.signing import NOW

GITHUB = PROVIDERS["github"]
COMMON = {"repository": {"full_name": "acme/app"}, "sender": {"login": "ann"}}
PULL = {
    "number": 12,
    "title": "Faster start",
    "body": "See #7",
    "html_url": "https://github.com/acme/app/pull/12",
    "user": {"login": "bob"},
    "assignee": None,
    "labels": [{"name": "agent"}],
    "head": {"ref": "faster", "sha": "abc"},
    "base": {"ref": "main"},
}


def parsed(event, **payload):
    return GITHUB.parse({"x-github-event": event}, {**COMMON, **payload}, NOW)


def test_a_pull_request_has_its_head_branch():
    context = parsed("pull_request", action="opened", pull_request=PULL)
    assert context.as_dict() == {
        "source": "github",
        "event": "pull_request",
        "action": "opened",
        "repo": "acme/app",
        "number": 12,
        "title": "Faster start",
        "body": "See #7",
        "url": "https://github.com/acme/app/pull/12",
        "author": "bob",
        "labels": ["agent"],
        "branch": "faster",
        "sender": "ann",
        "timestamp": "2026-03-01T12:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("event", "key"),
    [("pull_request_review", "review"), ("pull_request_review_comment", "comment")],
)
def test_a_review_is_a_comment_with_the_fields_of_its_pull_request(event, key):
    comment = {"body": "Looks good", "html_url": "https://github.com/r/1", "user": {"login": "eve"}}
    context = parsed(event, action="submitted", pull_request=PULL, **{key: comment})
    assert (context.number, context.author, context.branch) == (12, "bob", "faster")
    assert (context.comment, context.url) == ("Looks good", "https://github.com/r/1")
    assert context.labels == ("agent",)
    assert parsed(event, pull_request=PULL) is None


def test_a_pushed_tag_has_its_full_name_as_the_branch():
    context = parsed("push", ref="refs/tags/v1", head_commit=None, pusher={"name": "ann"})
    assert (context.branch, context.author) == ("refs/tags/v1", "ann")


@pytest.mark.parametrize("payload", [None, [], "x", 1, {"repository": "x"}, {"repository": []}])
def test_a_payload_of_another_shape_is_ignored(payload):
    assert GITHUB.parse({"x-github-event": "issues"}, payload, NOW) is None


def test_the_delivery_id_is_the_header_or_the_hash_of_the_body():
    guid = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
    assert GITHUB.delivery_id({"x-github-delivery": guid}, b"{}") == guid
    hashed = GITHUB.delivery_id({}, b"{}")
    assert hashed.startswith("sha256:44136fa3")
    for unusable in ("x" * 201, "a\nb", "\xe9", ""):
        assert GITHUB.delivery_id({"x-github-delivery": unusable}, b"{}") == hashed


def test_the_body_limit_of_github_is_its_largest_payload():
    assert GITHUB.body_limit_bytes > 25 * 2**20
