"""Linear and Jira: the same steps of a claim with the requests of each system, in the process."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from agents_app.work_sources.kinds import ClaimMark, FetchOptions, HttpReply, ItemReport
from agents_app.work_sources.kinds.contract import SourceAccess, SourceClient
from agents_app.work_sources.kinds.jira import JIRA, JiraAPIError, JiraIssues, JiraSettings
from agents_app.work_sources.kinds.linear import LINEAR, LinearIssues, LinearSettings
from agents_app.work_sources.kinds.settings import SourceLabels

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATE = "Thu, 01 Jan 2026 12:00:00 GMT"
A, B = "a" * 32, "b" * 32
Json = dict[str, Any]


class Tracker:
    """One issue KEY-1 and an older one that is blocked; a subclass has the API of a system."""

    def __init__(self) -> None:
        self.labels = ["ready", "urgent"]
        self.done = False
        self.comments: list[Json] = []
        self.seconds = 0

    def comment(self, body: str) -> Json:
        self.seconds += 1
        at = (NOW + timedelta(seconds=self.seconds)).isoformat(timespec="milliseconds")
        self.comments.append({"id": str(100 + self.seconds), "body": body, "at": at})
        return {}

    def delete(self, key: str) -> None:
        self.comments = [each for each in self.comments if each["id"] != key]

    def access(self) -> SourceAccess:
        return SourceAccess(
            send=self.send,
            now=lambda: NOW,
            secret={"email": "a@b.test", "token": "a token", "value": "lin_api_x"},
        )

    def send(self, method: str, url: str, _headers: Any, body: bytes | None) -> HttpReply:
        status, answer = self.answer(method, url, json.loads(body or b"{}"))
        return HttpReply(status, {"date": DATE}, json.dumps(answer).encode())

    def answer(self, method: str, url: str, body: Json) -> tuple[int, Json]:
        raise NotImplementedError

    def client(self) -> SourceClient:
        raise NotImplementedError


class Jira(Tracker):
    item = "jira-KEY-1"

    def client(self) -> SourceClient:
        return JiraIssues(JiraSettings(project="KEY", url="https://jira.test"), self.access())

    def answer(self, method: str, url: str, body: Json) -> tuple[int, Json]:
        parts = urlsplit(url)
        path = parts.path.removeprefix("/rest/api/2")
        if path == "/search/jql":
            (self.jql,) = parse_qs(parts.query)["jql"]
            return 200, {"issues": [self._issue()] if "ready" in self.labels else []}
        if path.startswith("/issue/KEY-1/comment"):
            return self._comments(method, path, body)
        if path == "/issue/KEY-1/transitions":
            self.done = self.done or body == {"transition": {"id": "31"}}
            to = {"name": "Done", "statusCategory": {"key": "done"}}
            other = {"name": "Doing", "statusCategory": {"key": "indeterminate"}}
            return 200, {"transitions": [{"id": "21", "to": other}, {"id": "31", "to": to}]}
        if path != "/issue/KEY-1":
            return 404, {}
        for change in body.get("update", {}).get("labels", ()):
            self.labels = [each for each in self.labels if each != change.get("remove")]
            self.labels += [change["add"]] if "add" in change else []
        return (200, self._issue()) if method == "GET" else (204, {})

    def _comments(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        if method == "POST":
            return 201, self.comment(body["body"])
        if method == "DELETE":
            self.delete(path.rpartition("/")[2])
            return 204, {}
        shown = [{**each, "created": each["at"], "author": {}} for each in self.comments]
        return 200, {"comments": shown, "total": len(shown)}

    def _issue(self) -> Json:
        category = {"key": "done" if self.done else "new"}
        fields = {
            "summary": "a title",
            "description": "a text",
            "labels": self.labels,
            "created": "2026-01-01T00:00:00.000+0000",
            "status": {"statusCategory": category},
            "reporter": {"displayName": "Ann"},
        }
        return {"key": "KEY-1", "fields": fields}


class Linear(Tracker):
    item = "linear-KEY-1"

    def client(self) -> SourceClient:
        return LinearIssues(LinearSettings(team="KEY"), self.access())

    def answer(self, _method: str, _url: str, body: Json) -> tuple[int, Json]:
        query, values = body["query"], body["variables"]
        operation = re.search(r"\{\s*(\w+)", query)
        assert operation is not None
        return 200, {"data": {operation[1]: getattr(self, operation[1])(values)}}

    def issues(self, values: Json) -> Json:
        found = [self.issue({})] if "ready" in self.labels else []
        return {"nodes": found, "pageInfo": {"hasNextPage": False, "endCursor": None}}

    def issue(self, _values: Json) -> Json:
        user = {"name": "Ann", "guest": False}
        comments = [{**each, "createdAt": each["at"], "user": user} for each in self.comments]
        return {
            "identifier": "KEY-1",
            "title": "a title",
            "url": "https://linear.test/KEY-1",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "priority": 0,
            "state": {"type": "completed" if self.done else "unstarted"},
            "labels": {"nodes": [{"id": f"id of {name}", "name": name} for name in self.labels]},
            "description": "a text",
            "creator": {"name": "Ann"},
            "comments": {"nodes": comments},
        }

    def issueLabels(self, values: Json) -> Json:
        name = values["filter"]["name"]["eqIgnoreCase"]
        return {"nodes": [{"id": f"id of {name}", "team": None}]}

    def issueAddLabel(self, values: Json) -> Json:
        self.labels.append(values["label"].removeprefix("id of "))
        return {}

    def issueRemoveLabel(self, values: Json) -> Json:
        self.labels.remove(values["label"].removeprefix("id of "))
        return {}

    def workflowStates(self, _values: Json) -> Json:
        return {"nodes": [{"id": "later", "position": 9}, {"id": "first", "position": 2.5}]}

    def issueUpdate(self, values: Json) -> Json:
        self.done = values["state"] == "first"
        return {}

    def commentCreate(self, values: Json) -> Json:
        return self.comment(values["body"])

    def commentDelete(self, values: Json) -> Json:
        self.delete(values["id"])
        return {}


@pytest.fixture(params=[Jira, Linear])
def tracker(request) -> Any:
    return request.param()


def mark(token: str) -> ClaimMark:
    return ClaimMark(token=token, since=NOW, text="An agent works on this.")


def report(token: str, outcome: Any) -> ItemReport:
    return ItemReport(mark=mark(token), outcome=outcome, text="The text of the report.")


def test_an_issue_is_found_claimed_and_finished(tracker):
    client = tracker.client()
    fetched = client.fetch(FetchOptions(limit=100))
    (found,) = fetched.candidates
    assert (found.id, found.priority, fetched.at) == (tracker.item, "critical", NOW)
    tracker.comment("please hurry")
    assert client.claim(found.id, A).success
    assert sorted(tracker.labels) == ["agent-working", "urgent"]
    details = client.confirm(found.id, mark(A)).details
    assert details is not None
    assert (details.body, details.author) == ("a text", "Ann")
    assert [each.text for each in details.comments] == ["please hurry"]
    client.complete(found.id, report(A, "success"))
    assert tracker.done
    assert tracker.labels == ["urgent"]
    assert "The text of the report." in tracker.comments[-1]["body"]


def test_of_two_drovers_the_first_comment_wins(tracker):
    client, other = tracker.client(), tracker.client()
    assert client.claim(tracker.item, A).success
    # The other one had read the labels before.
    assert other.claim(tracker.item, B, again=True).success
    assert client.confirm(tracker.item, mark(A)).success
    assert other.confirm(tracker.item, mark(B)).reason == "already_claimed"
    assert len(tracker.comments) == 1
    assert "agent-working" in tracker.labels


def test_a_released_issue_is_ready_again(tracker):
    client = tracker.client()
    assert client.claim(tracker.item, A).success
    assert client.confirm(tracker.item, mark(A)).success
    client.release(tracker.item, report(A, "released"))
    assert sorted(tracker.labels) == ["ready", "urgent"]
    assert not tracker.done
    assert client.claim(tracker.item, B).success
    assert client.confirm(tracker.item, mark(B)).success


def test_a_claimed_or_finished_issue_is_refused(tracker):
    tracker.labels = ["agent-working"]
    assert tracker.client().claim(tracker.item, A).reason == "already_claimed"
    tracker.done = True
    assert tracker.client().claim(tracker.item, A).reason == "invalid_state"


def test_an_id_of_another_system_is_refused(tracker):
    with pytest.raises(Exception, match="is not the id of an issue"):
        tracker.client().claim("github-1", A)


# --- what only one of them has ----------------------------------------------------------------


def test_labels_in_a_query_of_jira_cannot_change_it():
    jira = Jira()
    settings = JiraSettings(
        project="KEY",
        url="https://jira.test",
        labels=SourceLabels(ready='go" OR project = "OTHER'),
    )
    JiraIssues(settings, jira.access()).fetch(FetchOptions())
    assert 'labels = "go\\" OR project = \\"OTHER"' in jira.jql


def test_jira_without_a_way_to_the_finished_status_says_so():
    jira = Jira()
    settings = JiraSettings(project="KEY", url="https://jira.test", done_status="Shipped")
    with pytest.raises(JiraAPIError, match="no transition leads to the status 'Shipped'"):
        JiraIssues(settings, jira.access()).finish("KEY-1")


def test_a_limit_of_linear_is_waited_for():
    linear = Linear()
    limited = {"message": "Rate limit exceeded", "extensions": {"code": "RATELIMITED"}}
    linear.answer = lambda *_: (400, {"errors": [limited]})  # type: ignore[method-assign]
    result = linear.client().claim(linear.item, A)
    assert result.reason == "source_error"
    with pytest.raises(Exception, match="Rate limit exceeded") as error:
        linear.client().fetch(FetchOptions())
    assert error.value.retry_at == NOW + timedelta(seconds=60)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("context", "woken"),
    [
        ({"event": "issues", "url": "https://linear.app/acme/issue/KEY-7/a-title"}, True),
        ({"event": "issues", "url": "https://linear.app/acme/issue/OTHER-7/a-title"}, False),
        ({"event": "project", "url": "https://linear.app/acme/issue/KEY-7/a-title"}, False),
    ],
)
def test_an_issue_of_the_team_wakes_its_schedules(context, woken):
    assert LINEAR.wakes(LinearSettings(team="KEY"), context) == woken


def test_an_issue_of_the_jira_project_wakes_its_schedules():
    settings = JiraSettings(project="KEY", url="https://jira.test")
    assert JIRA.wakes(settings, {"repo": "KEY"})
    assert not JIRA.wakes(settings, {"repo": "OTHER"})
