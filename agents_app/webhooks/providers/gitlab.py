"""GitLab: the secret token in a header, or a signature as Standard Webhooks; the event in the body.

GitLab sends the secret token as it is: the token proves the sender, not the body. A webhook with a
signing token has a signature over id, time and body. A webhook may have both.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from agents_app.webhooks.providers import standard
from agents_app.webhooks.providers.context import Context
from agents_app.webhooks.providers.filters import FilterField, filter_on
from agents_app.webhooks.providers.provider import MEGABYTE, Provider, id_in_header
from agents_app.webhooks.providers.reading import dig, first, iso, items, text, texts, whole
from agents_app.webhooks.providers.signing import Headers, Secrets, Signed, named_by_token

Fields = dict[str, Any]


def verify(request: Signed, secrets: Secrets, now: datetime) -> str | None:
    by_token = named_by_token(secrets, request.header("x-gitlab-token"))
    by_signature = standard.verify(request, secrets, now)
    return by_token if by_signature is None else by_signature


def parse(headers: Headers, payload: Any, received_at: datetime) -> Context | None:
    """System hooks name some events in `event_name` only."""
    del headers
    event = first(text(payload, "object_kind"), text(payload, "event_name"))
    if not event:
        return None
    fields = _EVENTS.get(event, _other_event)(payload)
    common: Fields = {
        "source": "gitlab",
        "event": event,
        "action": text(payload, "object_attributes", "action"),
        "repo": text(payload, "project", "path_with_namespace") or "",
        "sender": first(text(payload, "user", "username"), text(payload, "user_username"))
        or "unknown",
        "timestamp": iso(received_at),
    }
    return Context(**{"title": event, **common, **fields})


def _thread(thread: Any, labels: Any) -> Fields:
    """The fields that issues, merge requests and comments on them have in common."""
    return {
        "number": whole(thread, "iid"),
        "title": text(thread, "title"),
        "labels": texts(labels, "title"),
        "branch": text(thread, "source_branch"),
    }


def _thread_with_body(payload: Any) -> Fields:
    thread = dig(payload, "object_attributes")
    return {
        **_thread(thread, items(payload, "labels")),
        "body": text(thread, "description"),
        "url": text(thread, "url"),
        "assignee": first(*texts(items(payload, "assignees"), "username")),
    }


def _note(payload: Any) -> Fields:
    """A comment; a comment on a commit or a snippet has no number and no labels."""
    note = dig(payload, "object_attributes")
    thread = _first_of(payload, "merge_request", "issue", "snippet")
    commit = text(payload, "commit", "message")
    fields = _thread(thread, items(thread, "labels"))
    return {
        **fields,
        "title": fields["title"] or commit,
        "author": text(payload, "user", "username"),
        "comment": text(note, "note"),
        "url": text(note, "url"),
    }


def _first_of(payload: Any, *names: str) -> Any:
    return next((found for name in names if (found := dig(payload, name))), None)


def _push(payload: Any) -> Fields:
    # A tag keeps its full name: an event without a branch would match every filter on branches.
    commits = items(payload, "commits")
    return {
        "branch": (text(payload, "ref") or "").removeprefix("refs/heads/") or None,
        "title": first(*texts(commits[-1:], "title"), *texts(commits[-1:], "message")) or "push",
        "author": text(payload, "user_username"),
        "url": text(payload, "project", "web_url"),
    }


def _pipeline(payload: Any) -> Fields:
    pipeline = dig(payload, "object_attributes")
    return {
        **_concluded(text(pipeline, "status")),
        "number": whole(payload, "merge_request", "iid"),
        "title": first(text(pipeline, "name"), text(payload, "commit", "title")) or "pipeline",
        "branch": text(pipeline, "ref"),
        "url": text(pipeline, "url"),
        "action": text(pipeline, "status"),
    }


def _job(payload: Any) -> Fields:
    """The events of a job are named `build`."""
    status = text(payload, "build_status")
    return {
        **_concluded(status),
        "title": text(payload, "build_name"),
        "branch": text(payload, "ref"),
        "repo": text(payload, "project", "path_with_namespace")
        or (text(payload, "project_name") or "").replace(" / ", "/"),
        "action": status,
        "url": text(payload, "project", "web_url"),
    }


def _concluded(status: str | None) -> Fields:
    """A conclusion only if the pipeline or job has ended: other states are on the way to it."""
    ended = status if status in {"success", "failed", "canceled", "skipped"} else None
    return {"conclusion": ended, "unconcluded": ended is None}


def _other_event(payload: Any) -> Fields:
    """Releases, deployments, wiki pages: their fields are at the top or in attributes."""
    attributes = dig(payload, "object_attributes")
    return {
        "action": first(text(attributes, "action"), text(payload, "action")),
        "title": first(text(attributes, "title"), text(payload, "name"), text(payload, "tag")),
        "body": first(text(attributes, "description"), text(payload, "description")),
        "url": first(text(attributes, "url"), text(payload, "url")),
        "branch": text(payload, "ref"),
    }


_EVENTS: dict[str, Callable[[Any], Fields]] = {
    "issue": _thread_with_body,
    "work_item": _thread_with_body,
    "merge_request": _thread_with_body,
    "note": _note,
    "push": _push,
    "tag_push": _push,
    "pipeline": _pipeline,
    "build": _job,
}

_GROUP = FilterField(lambda context: [context.repo.rpartition("/")[0]], "group")

GITLAB = Provider(
    name="gitlab",
    verify=verify,
    # Not X-Gitlab-Event-UUID: an event that another webhook caused has the same one.
    delivery_id=id_in_header("idempotency-key"),
    parse=parse,
    body_limit_bytes=26 * MEGABYTE,
    sends_again=False,
    filters={
        "events": filter_on("event"),
        "actions": filter_on("action"),
        "repos": filter_on("repo"),
        "projects": filter_on("repo"),
        "groups": _GROUP,
        "labels": filter_on("labels"),
        "assignee": filter_on("assignee"),
        "branches": filter_on("branch", absent_passes=True),
        "conclusions": filter_on("conclusion", absent_passes=True),
    },
)
