"""Issues of a GitHub repository: labels show their state, comments decide about claims."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from agents_app.work_sources.kinds.api import ApiError, ApiReply, JsonApi
from agents_app.work_sources.kinds.comments import MarkedItem
from agents_app.work_sources.kinds.contract import (
    Candidate,
    Fetched,
    FetchOptions,
    ItemComment,
    SourceAccess,
    SourceKind,
    WorkDetails,
    priority_of,
)
from agents_app.work_sources.kinds.github_app import authorization
from agents_app.work_sources.kinds.labelled import ItemState, LabelledItems
from agents_app.work_sources.kinds.markers import MarkedText, has_mark
from agents_app.work_sources.kinds.settings import (
    EXCLUDED,
    Attempts,
    Auth,
    LabelList,
    Repository,
    ServerUrl,
    SourceLabels,
)

PAGE_SIZE, LARGEST_PAGE = 30, 100
MOST_PAGES = 10
_ID = re.compile(r"github-([0-9]{1,18})", re.ASCII)
_NEXT_PAGE = re.compile(r'<[^>]*[?&]page=([0-9]+)[^>]*>;\s*rel="next"')
# As `encodeURIComponent` of JavaScript.
_SAFE_IN_PATHS = "!~*'()"
# Who may write to the repository; marks of other people have no effect.
WRITERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


class GitHubAPIError(ApiError):
    """GitHub has refused a request or has not answered, or an id is not one of an issue."""

    code = "github_api"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSettings:
    repo: Repository
    labels: SourceLabels = field(default_factory=SourceLabels)
    exclude_labels: LabelList = EXCLUDED
    cleanup_on_failure: bool = True
    max_attempts: Attempts = 3
    auth: Auth = "github_token"
    url: ServerUrl = "https://api.github.com"


def issue_number(item_id: str) -> int:
    match = _ID.fullmatch(item_id)
    if match is None:
        raise GitHubAPIError(f"{item_id[:60]!r} is not the id of an issue: expected github-NUMBER")
    return int(match[1])


class GitHubIssues(LabelledItems):
    def __init__(self, settings: GitHubSettings, access: SourceAccess) -> None:
        super().__init__(settings.labels, access, cleanup=settings.cleanup_on_failure)
        self.settings = settings
        self.api = JsonApi(
            base=settings.url,
            send=access.send,
            headers=lambda: _headers(settings, access),
            now=access.now,
            sleep=access.sleep,
            error=GitHubAPIError,
        )
        self.root = f"/repos/{settings.repo}/issues"

    # --- fetching ---------------------------------------------------------------------------

    def fetch(self, options: FetchOptions) -> Fetched:
        conditional = {"If-None-Match": options.etag} if options.etag else {}
        reply = self.api.call("GET", f"{self.root}?{self._query(options)}", headers=conditional)
        if reply.status == 304:
            return Fetched(etag=options.etag, unchanged=True, at=self._time(reply))
        return Fetched(
            candidates=tuple(self._candidates(reply.data, options)),
            next_cursor=_next_page(reply.headers),
            etag=reply.headers.get("etag", ""),
            at=self._time(reply),
        )

    def _query(self, options: FetchOptions) -> str:
        limit = min(options.limit, LARGEST_PAGE) if options.limit else PAGE_SIZE
        page = {"page": options.cursor} if options.cursor else {}
        return urlencode(
            {
                "labels": self.settings.labels.ready,
                "sort": "created",
                "direction": "asc",
                "state": "open",
                "per_page": limit,
                **page,
            }
        )

    def _candidates(self, issues: Any, options: FetchOptions) -> Iterator[Candidate]:
        wanted = {label.lower() for label in options.labels}
        unwanted = {label.lower() for label in self.settings.exclude_labels}
        if not options.include_claimed:
            unwanted.add(self.settings.labels.in_progress.lower())
        for issue in issues if isinstance(issues, list) else ():
            # GitHub lists pull requests among the issues.
            if "pull_request" in issue:
                continue
            candidate = _candidate(issue)
            labels = {label.lower() for label in candidate.labels}
            right = not options.priorities or candidate.priority in options.priorities
            if right and wanted <= labels and not unwanted & labels:
                yield candidate

    def _time(self, reply: ApiReply) -> datetime:
        return reply.at or self.access.now()

    # --- requests ---------------------------------------------------------------------------

    def key_of(self, item_id: str) -> str:
        return str(issue_number(item_id))

    def _issue(self, key: str) -> Mapping[str, Any]:
        data = self.api.call("GET", f"{self.root}/{key}").data
        if not isinstance(data, dict):
            raise GitHubAPIError(f"issue {key}: the answer is not an issue", status=502)
        return data

    def read_item(self, key: str) -> ItemState:
        issue = self._issue(key)
        pull = "the number is that of a pull request" if "pull_request" in issue else ""
        is_open = issue.get("state") != "closed"
        return ItemState(item=_candidate(issue), is_open=is_open, refusal=pull)

    def add_label(self, key: str, label: str) -> None:
        self.api.call("POST", f"{self.root}/{key}/labels", {"labels": [label]})

    def remove_label(self, key: str, label: str) -> None:
        # 404: the issue does not have the label.
        path = f"{self.root}/{key}/labels/{quote(label, safe=_SAFE_IN_PATHS)}"
        self.api.call("DELETE", path, accept=(404,))

    def finish(self, key: str) -> None:
        closed = {"state": "closed", "state_reason": "completed"}
        self.api.call("PATCH", f"{self.root}/{key}", closed)

    def marked(self, key: str) -> MarkedItem:
        path = f"{self.root}/{key}/comments"
        return MarkedItem(
            read=lambda since: self._trusted(key, since),
            # Not repeated: a comment must not appear twice. The next attempt looks for it.
            write=lambda text: self.api.call("POST", path, {"body": text}, repeat=False),
            delete=lambda comment: self.api.call(
                "DELETE", f"{self.root}/comments/{comment}", accept=(404,)
            ),
            sleep=self.access.sleep,
        )

    def read_details(self, key: str) -> WorkDetails:
        issue = self._issue(key)
        count = int(issue.get("comments") or 0)
        # The last page: the latest comments.
        last = max(1, -(-count // LARGEST_PAGE))
        comments = self._comments(key, page=last) if count else []
        return _details(issue, comments)

    def _trusted(self, key: str, since: datetime) -> list[MarkedText]:
        comments = self._comments(key, since=since.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return [
            MarkedText(str(comment["id"]), _moment(comment["created_at"]), _text(comment, "body"))
            for comment in sorted(comments, key=lambda comment: int(comment["id"]))
            if _may_write(comment)
        ]

    def _comments(self, key: str, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        page = str(query.pop("page", "1"))
        for _ in range(MOST_PAGES):
            asked = urlencode({**query, "per_page": LARGEST_PAGE, "page": page})
            reply = self.api.call("GET", f"{self.root}/{key}/comments?{asked}")
            found += reply.data if isinstance(reply.data, list) else []
            page = _next_page(reply.headers)
            if not page:
                break
        return found


# --- values -----------------------------------------------------------------------------------


def _headers(settings: GitHubSettings, access: SourceAccess) -> dict[str, str]:
    return {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "Authorization": authorization(settings.url, access),
    }


def _next_page(headers: Mapping[str, str]) -> str:
    found = _NEXT_PAGE.search(headers.get("link", ""))
    return found[1] if found else ""


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _label_names(issue: Mapping[str, Any]) -> tuple[str, ...]:
    found = issue.get("labels") or ()
    names = (label.get("name") if isinstance(label, dict) else label for label in found)
    return tuple(name for name in names if isinstance(name, str))


def _login(value: Mapping[str, Any]) -> str:
    user = value.get("user")
    return _text(user, "login") if isinstance(user, dict) else ""


def _candidate(issue: Mapping[str, Any]) -> Candidate:
    labels = _label_names(issue)
    return Candidate(
        id=f"github-{int(issue['number'])}",
        title=_text(issue, "title"),
        url=_text(issue, "html_url"),
        labels=labels,
        priority=priority_of(labels),
        created_at=_text(issue, "created_at"),
    )


def _details(issue: Mapping[str, Any], comments: list[dict[str, Any]]) -> WorkDetails:
    shown = tuple(
        ItemComment(_login(comment), _text(comment, "created_at"), _text(comment, "body"))
        for comment in comments
        if not has_mark(_text(comment, "body"))
    )
    return WorkDetails(
        item=_candidate(issue), body=_text(issue, "body"), author=_login(issue), comments=shown
    )


def _may_write(comment: Mapping[str, Any]) -> bool:
    user = comment.get("user")
    bot = isinstance(user, dict) and user.get("type") == "Bot"
    return bot or comment.get("author_association") in WRITERS


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _wakes(settings: GitHubSettings, context: Mapping[str, Any]) -> bool:
    same = str(context.get("repo", "")).lower() == settings.repo.lower()
    return same and context.get("event") == "issues"


GITHUB = SourceKind(
    settings=GitHubSettings,
    open=GitHubIssues,
    name=lambda settings: settings.repo,
    place=lambda settings: f"{urlsplit(settings.url).hostname}/{settings.repo.lower()}",
    wakes=_wakes,
)
