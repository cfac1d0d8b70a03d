"""Adapters of the suites about work sources: a scripted GitHub that answers in the process."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter

from agents_app.errors import DroverError
from agents_app.work_sources.kinds import ClaimMark, FetchOptions, HttpReply, ItemReport
from agents_app.work_sources.kinds.contract import SourceAccess, priority_of
from agents_app.work_sources.kinds.github import GitHubIssues, GitHubSettings, issue_number
from agents_app.work_sources.kinds.retry import backoff_ms, is_rate_limited, is_retryable

Case = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ITEM = "github-5"
MARK = ClaimMark(token="0" * 32, since=NOW)


@dataclass
class ScriptedGitHub:
    """Issue 5 of o/r, a list of issues, and the requests that were made."""

    issue: Mapping[str, Any] | None = None
    issues: list[Case] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def send(
        self, method: str, url: str, _headers: Mapping[str, str], body: bytes | None
    ) -> HttpReply:
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        given = json.loads(body or b"{}")
        # The text of a comment is not compared.
        compared = bool(given) and not path.endswith("/comments")
        shown = f" {json.dumps(given, separators=(',', ':'))}" if compared else ""
        self.calls.append(f"{method} {path}{shown}")
        status, answer = self._answer(method, parts.path, given)
        return HttpReply(status, {}, json.dumps(answer).encode())

    def _answer(self, method: str, path: str, body: Case) -> tuple[int, Any]:
        if path == "/repos/o/r/issues":
            return 200, [_issue(**each) for each in self.issues]
        if self.issue is None:
            return 403, {"message": "Resource not accessible by personal access token"}
        labels: list[str] = list(self.issue.get("labels", ()))
        if method == "POST" and path.endswith("/labels"):
            labels += body["labels"]
        elif method == "DELETE":
            labels = [label for label in labels if label != unquote(path.rpartition("/")[2])]
        self.issue = {**self.issue, "labels": labels}
        return 200, _issue(**{"number": 5, **self.issue})

    def client(self, config: Case | None = None) -> GitHubIssues:
        settings: GitHubSettings = TypeAdapter(GitHubSettings).validate_python(
            {"repo": "o/r", **(config or {})}
        )
        access = SourceAccess(send=self.send, now=lambda: NOW, secret={"value": "a token"})
        return GitHubIssues(settings, access)


def _issue(**fields: Any) -> Case:
    labels = [{"name": label} for label in fields.pop("labels", ())]
    named = {"title": "a title", "state": "open", "html_url": "", "created_at": ""}
    return {**named, **fields, "labels": labels}


def _fetch(case: Case) -> Case:
    github = ScriptedGitHub(issues=case["issues"])
    asked = case["options"]
    options = FetchOptions(
        limit=asked.get("limit"),
        cursor=asked.get("cursor", ""),
        labels=tuple(asked.get("labels", ())),
        priorities=tuple(asked.get("priority", ())),
        include_claimed=asked.get("includeClaimed", False),
    )
    fetched = github.client(case["config"]).fetch(options)
    return {"ids": [each.id for each in fetched.candidates], "calls": github.calls}


def _claim(case: Case) -> Case:
    github = ScriptedGitHub(issue=case["issue"])
    # The suite claims any open issue by its number.
    result = github.client(case.get("config")).claim(ITEM, MARK.token, only_ready=False)
    reason = {} if result.success else {"reason": result.reason}
    return {"success": result.success, **reason, "calls": github.calls}


def _complete(case: Case) -> Case:
    github = ScriptedGitHub(issue={"labels": ["agent-working"]})
    report = ItemReport(mark=MARK, outcome=case["outcome"], text="the outcome")
    github.client(case.get("config")).complete(ITEM, report)
    return {"calls": github.calls}


def _release(case: Case) -> Case:
    github = ScriptedGitHub(issue={"labels": ["agent-working"]})
    config = {"cleanup_on_failure": case["cleanup_on_failure"]}
    report = ItemReport(mark=MARK, outcome="released", text="the reason")
    github.client(config).release(ITEM, report)
    return {"success": True, "calls": github.calls}


def _identify(case: Case) -> Case:
    try:
        return {"number": issue_number(case["work_item_id"])}
    except DroverError as error:
        return {"error": type(error).__name__}


OPERATIONS: dict[str, Callable[[Case], Any]] = {
    "priority": lambda case: priority_of(case["labels"]),
    "fetch": _fetch,
    "claim": _claim,
    "complete": _complete,
    "release": _release,
    "id": _identify,
}


def github(case: Case) -> Any:
    return OPERATIONS[case["op"]](case)


def retry(case: Case) -> Any:
    if "attempt" in case:
        return backoff_ms(case["attempt"], case["rate_limit_reset_ms"], case["jitter"])
    if "rate_limited" in case:
        return is_retryable(case["status"], case["rate_limited"])
    remaining = case["remaining"]
    # A header is a text, however the case writes it.
    return is_rate_limited(case["status"], None if remaining is None else str(remaining))


WORKSOURCE_ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "worksource.github": github,
    "worksource.retry": retry,
}
