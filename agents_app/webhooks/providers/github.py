"""GitHub: HMAC over the body, the event in a header."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField, filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider, id_in_header
from agents_app.webhooks.providers.reading import dig, first, iso, items, text, texts, whole
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, signed_by_mac

Fields = dict[str, Any]


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    del now  # GitHub signs no timestamp
    given = request.header("x-hub-signature-256")
    return signed_by_mac(secrets, request.body, given, prefix="sha256=")


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    event = text(headers.get("x-github-event"))
    repo = text(payload, "repository", "full_name")
    if not event or event == "ping" or not repo:
        return None
    fields = _EVENTS.get(event, _other_event)(payload)
    if fields is None:
        return None
    common: Fields = {
        "source": "github",
        "event": event,
        "action": text(payload, "action"),
        "repo": repo,
        "sender": text(payload, "sender", "login") or "unknown",
        "timestamp": iso(received_at),
    }
    return Context(**{"title": event, **common, **fields})


def _thread(thread: Any) -> Fields:
    """The fields that issues and pull requests have in common."""
    return {
        "number": whole(thread, "number"),
        "title": text(thread, "title"),
        "author": text(thread, "user", "login"),
        "labels": texts(items(thread, "labels"), "name"),
    }


def _thread_with_body(thread: Any) -> Fields:
    return {
        **_thread(thread),
        "body": text(thread, "body"),
        "url": text(thread, "html_url"),
        "assignee": text(thread, "assignee", "login"),
    }


def _comment_fields(thread: Any, comment: Any) -> Fields:
    return {
        **_thread(thread),
        "url": text(comment, "html_url"),
        "comment": text(comment, "body"),
    }


def _issues(payload: Any) -> Fields | None:
    issue = dig(payload, "issue")
    return _thread_with_body(issue) if issue else None


def _issue_comment(payload: Any) -> Fields | None:
    issue, comment = dig(payload, "issue"), dig(payload, "comment")
    return _comment_fields(issue, comment) if issue and comment else None


def _pull_request(payload: Any) -> Fields | None:
    pull = dig(payload, "pull_request")
    return {**_thread_with_body(pull), "branch": text(pull, "head", "ref")} if pull else None


def _review(key: str) -> Callable[[Any], Fields | None]:
    def fields(payload: Any) -> Fields | None:
        pull, comment = dig(payload, "pull_request"), dig(payload, key)
        if not pull or not comment:
            return None
        return {**_comment_fields(pull, comment), "branch": text(pull, "head", "ref")}

    return fields


def _push(payload: Any) -> Fields:
    # A tag keeps its full name: an event without a branch would match every filter on branches.
    return {
        "branch": (text(payload, "ref") or "").removeprefix("refs/heads/") or None,
        "url": text(payload, "compare"),
        "title": text(payload, "head_commit", "message"),
        "author": first(
            text(payload, "head_commit", "author", "username"), text(payload, "pusher", "name")
        ),
    }


def _workflow_run(payload: Any) -> Fields | None:
    run = dig(payload, "workflow_run")
    if not run:
        return None
    conclusion = text(run, "conclusion")
    return {
        "title": text(run, "name"),
        "url": text(run, "html_url"),
        "branch": text(run, "head_branch"),
        "author": text(run, "actor", "login"),
        "number": next((whole(p, "number") for p in items(run, "pull_requests")), None),
        "conclusion": conclusion,
        "unconcluded": conclusion is None,
    }


def _other_event(payload: Any) -> Fields:
    action = text(payload, "action")
    return {"title": action} if action else {}


_EVENTS: dict[str, Callable[[Any], Fields | None]] = {
    "issues": _issues,
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_review": _review("review"),
    "pull_request_review_comment": _review("comment"),
    "push": _push,
    "workflow_run": _workflow_run,
}

_OWNER = FilterField(lambda context: [context.repo.split("/")[0]], "owner")

GITHUB = Provider(
    name="github",
    verify=verify,
    delivery_id=id_in_header("x-github-delivery"),
    parse=parse,
    body_limit_bytes=26 * MEGABYTE,
    unique_bodies=True,
    sends_again=False,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "repos": filter_on("repo"),
        "org": _OWNER,
        "orgs": _OWNER,
        "labels": filter_on("labels"),
        "assignee": filter_on("assignee"),
        "author": filter_on("author"),
        "branches": filter_on("branch", absent_passes=True),
        "conclusions": filter_on("conclusion", absent_passes=True),
    },
)
