"""Issues of a Jira project, on Atlassian's cloud or on a server of one's own."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

from agents_app.work_sources.kinds.api import ApiError, JsonApi
from agents_app.work_sources.kinds.comments import MarkedItem
from agents_app.work_sources.kinds.contract import (
    Candidate,
    Fetched,
    FetchOptions,
    ItemComment,
    Priority,
    SourceAccess,
    SourceKind,
    WorkDetails,
    priority_of,
)
from agents_app.work_sources.kinds.labelled import ItemState, LabelledItems
from agents_app.work_sources.kinds.markers import MarkedText, has_mark
from agents_app.work_sources.kinds.settings import (
    EXCLUDED,
    Attempts,
    Auth,
    LabelList,
    ServerUrl,
    ShortKey,
    SourceLabels,
)

PAGE_SIZE, LARGEST_PAGE, MOST_PAGES = 50, 100, 10
FIELDS = "summary,description,labels,priority,created,status,reporter"
_ID = re.compile(r"jira-([A-Za-z][A-Za-z0-9_]*-[0-9]{1,18})", re.ASCII)
_PRIORITIES: Mapping[str, Priority] = {
    **dict.fromkeys(("highest", "blocker", "critical"), "critical"),
    **dict.fromkeys(("high", "major"), "high"),
    **dict.fromkeys(("low", "lowest", "minor", "trivial"), "low"),
}
# People who write through a customer portal; their marks have no effect.
CUSTOMER = "customer"


class JiraAPIError(ApiError):
    """Jira has refused a request or has not answered, or an id is not one of an issue."""

    code = "jira_api"


@dataclass(frozen=True, slots=True, kw_only=True)
class JiraSettings:
    project: ShortKey
    url: ServerUrl
    api: Literal["cloud", "server"] = "cloud"
    labels: SourceLabels = field(default_factory=SourceLabels)
    exclude_labels: LabelList = EXCLUDED
    # The status of finished issues; empty: the first transition to a status of the category done.
    done_status: str = ""
    cleanup_on_failure: bool = True
    max_attempts: Attempts = 3
    auth: Auth = "jira_token"


class JiraIssues(LabelledItems):
    def __init__(self, settings: JiraSettings, access: SourceAccess) -> None:
        super().__init__(settings.labels, access, cleanup=settings.cleanup_on_failure)
        self.settings = settings
        self.api = JsonApi(
            base=f"{settings.url}/rest/api/2",
            send=access.send,
            headers=lambda: {"Authorization": _authorization(access.secret)},
            now=access.now,
            sleep=access.sleep,
            error=JiraAPIError,
        )

    # --- fetching ---------------------------------------------------------------------------

    def fetch(self, options: FetchOptions) -> Fetched:
        limit = min(options.limit or PAGE_SIZE, LARGEST_PAGE)
        query: dict[str, Any] = {"jql": self._jql(options), "fields": FIELDS, "maxResults": limit}
        if options.cursor:
            paging = "nextPageToken" if self.settings.api == "cloud" else "startAt"
            query[paging] = options.cursor
        path = "/search/jql" if self.settings.api == "cloud" else "/search"
        reply = self.api.call("GET", f"{path}?{urlencode(query)}")
        found = [self._candidate(issue) for issue in reply.data.get("issues", ())]
        return Fetched(
            candidates=tuple(
                each
                for each in found
                if not options.priorities or each.priority in options.priorities
            ),
            next_cursor=self._next_cursor(reply.data, len(found)),
            at=reply.at or self.access.now(),
        )

    def _jql(self, options: FetchOptions) -> str:
        without = list(self.settings.exclude_labels)
        if not options.include_claimed:
            without.append(self.names.in_progress)
        wanted = [f"labels = {_quoted(label)}" for label in (self.names.ready, *options.labels)]
        # Issues without labels are not found by `not in`; these issues have at least one.
        listed = ", ".join(_quoted(label) for label in without)
        unwanted = [f"labels not in ({listed})"] if without else []
        conditions = [f"project = {_quoted(self.settings.project)}", *wanted, *unwanted]
        return " AND ".join([*conditions, "statusCategory != Done"]) + " ORDER BY created ASC"

    def _next_cursor(self, data: Mapping[str, Any], count: int) -> str:
        if self.settings.api == "cloud":
            return str(data.get("nextPageToken") or "")
        seen = int(data.get("startAt", 0)) + count
        return str(seen) if count and seen < int(data.get("total", 0)) else ""

    def _candidate(self, issue: Mapping[str, Any]) -> Candidate:
        fields, key = issue["fields"], str(issue["key"])
        labels = tuple(str(label) for label in fields.get("labels") or ())
        named = str((fields.get("priority") or {}).get("name", "")).lower()
        return Candidate(
            id=f"jira-{key}",
            title=str(fields.get("summary") or ""),
            url=f"{self.settings.url}/browse/{key}",
            labels=labels,
            priority=_PRIORITIES.get(named) or priority_of(labels),
            created_at=_moment(str(fields["created"])).isoformat(),
        )

    # --- requests ---------------------------------------------------------------------------

    def key_of(self, item_id: str) -> str:
        match = _ID.fullmatch(item_id)
        if match is None:
            raise JiraAPIError(f"{item_id[:60]!r} is not the id of an issue: expected jira-KEY-1")
        return match[1]

    def _issue(self, key: str) -> Any:
        return self.api.call("GET", f"/issue/{key}?fields={FIELDS}").data

    def read_item(self, key: str) -> ItemState:
        issue = self._issue(key)
        category = issue["fields"]["status"]["statusCategory"]["key"]
        return ItemState(item=self._candidate(issue), is_open=category != "done")

    def add_label(self, key: str, label: str) -> None:
        self._change_labels(key, {"add": label})

    def remove_label(self, key: str, label: str) -> None:
        self._change_labels(key, {"remove": label})

    def _change_labels(self, key: str, change: Mapping[str, str]) -> None:
        self.api.call("PUT", f"/issue/{key}", {"update": {"labels": [change]}})

    def finish(self, key: str) -> None:
        found = self.api.call("GET", f"/issue/{key}/transitions").data["transitions"]
        name = self.settings.done_status.lower()
        for transition in found:
            to = transition["to"]
            if to["name"].lower() == name if name else to["statusCategory"]["key"] == "done":
                body = {"transition": {"id": transition["id"]}}
                self.api.call("POST", f"/issue/{key}/transitions", body)
                return
        wanted = f"the status {self.settings.done_status!r}" if name else "a finished status"
        raise JiraAPIError(f"{key}: no transition leads to {wanted}; check `done_status`")

    def marked(self, key: str) -> MarkedItem:
        path = f"/issue/{key}/comment"
        return MarkedItem(
            read=lambda since: self._trusted(key, since),
            # Not repeated: a comment must not appear twice. The next attempt looks for it.
            write=lambda text: self.api.call("POST", path, {"body": text}, repeat=False),
            delete=lambda comment: self.api.call("DELETE", f"{path}/{comment}", accept=(404,)),
            sleep=self.access.sleep,
            form="{{{{{}}}}}",
        )

    def _trusted(self, key: str, since: datetime) -> list[MarkedText]:
        texts = [
            MarkedText(str(each["id"]), _moment(each["created"]), str(each["body"]))
            for each in self._comments(key)
            if (each.get("author") or {}).get("accountType") != CUSTOMER
        ]
        recent = [each for each in texts if each.at.replace(microsecond=0) >= since]
        return sorted(recent, key=lambda each: int(each.comment_id))

    def _comments(self, key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            query = urlencode({"startAt": len(found), "maxResults": LARGEST_PAGE})
            data = self.api.call("GET", f"/issue/{key}/comment?{query}").data
            found += data["comments"]
            if not data["comments"] or len(found) >= int(data["total"]):
                break
        return found

    def read_details(self, key: str) -> WorkDetails:
        issue = self._issue(key)
        comments = tuple(
            ItemComment(_name(each.get("author")), str(each["created"]), str(each["body"]))
            for each in self._comments(key)
            if not has_mark(str(each["body"]))
        )
        fields = issue["fields"]
        return WorkDetails(
            item=self._candidate(issue),
            body=str(fields.get("description") or ""),
            author=_name(fields.get("reporter")),
            comments=comments,
        )


# --- values -----------------------------------------------------------------------------------


def _authorization(secret: Mapping[str, str]) -> str:
    """An API token of the cloud belongs to an email address; a server's token stands alone."""
    token = secret.get("token") or secret.get("value", "")
    if email := secret.get("email"):
        return f"Basic {base64.b64encode(f'{email}:{token}'.encode()).decode()}"
    return f"Bearer {token}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _name(person: Any) -> str:
    return str(person.get("displayName") or "") if isinstance(person, dict) else ""


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _wakes(settings: JiraSettings, context: Mapping[str, Any]) -> bool:
    return str(context.get("repo", "")).lower() == settings.project.lower()


JIRA = SourceKind(
    settings=JiraSettings,
    open=JiraIssues,
    name=lambda settings: settings.project,
    place=lambda settings: f"{urlsplit(settings.url).hostname}/{settings.project.lower()}",
    wakes=_wakes,
)
