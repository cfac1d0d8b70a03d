"""Issues of a Linear team, through Linear's GraphQL API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from agents_app.work_sources.kinds.api import ApiError, ApiReply, JsonApi
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

PAGE_SIZE, LARGEST_PAGE = 50, 100
MOST_COMMENTS = 250
LIMIT_SECONDS = 60
_ID = re.compile(r"linear-([A-Za-z][A-Za-z0-9_]*-[0-9]{1,18})", re.ASCII)
_FINISHED = ("completed", "canceled")
# Linear's numbers; 0 means that none was chosen.
_PRIORITIES: Mapping[int, Priority] = {1: "critical", 2: "high", 3: "medium", 4: "low"}

_ISSUE = """id identifier title url createdAt priority state { type }
labels(first: 100) { nodes { id name } }"""
_FETCH = f"""
query($filter: IssueFilter, $first: Int, $after: String) {{
  issues(filter: $filter, first: $first, after: $after, orderBy: createdAt) {{
    nodes {{ {_ISSUE} }} pageInfo {{ hasNextPage endCursor }} }} }}"""
_READ = f"query($id: String!) {{ issue(id: $id) {{ {_ISSUE} }} }}"
_DETAILS = f"""
query($id: String!, $last: Int) {{
  issue(id: $id) {{ {_ISSUE} description creator {{ name }}
    comments(last: $last) {{ nodes {{ id body createdAt user {{ name guest }} }} }} }} }}"""
_LABEL = """
query($filter: IssueLabelFilter) { issueLabels(filter: $filter) { nodes { id team { key } } } }"""
_STATES = """
query($filter: WorkflowStateFilter) {
  workflowStates(filter: $filter) { nodes { id position } } }"""
_CHANGE_LABEL = """
mutation($id: String!, $label: String!) {{ {}(id: $id, labelId: $label) {{ success }} }}"""
_MOVE = """
mutation($id: String!, $state: String!) {
  issueUpdate(id: $id, input: {stateId: $state}) { success } }"""
_COMMENT = """
mutation($id: String!, $body: String!) {
  commentCreate(input: {issueId: $id, body: $body}) { success } }"""
_UNCOMMENT = "mutation($id: String!) { commentDelete(id: $id) { success } }"


class LinearAPIError(ApiError):
    """Linear has refused a request or has not answered, or an id is not one of an issue."""

    code = "linear_api"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSettings:
    team: ShortKey
    labels: SourceLabels = field(default_factory=SourceLabels)
    exclude_labels: LabelList = EXCLUDED
    cleanup_on_failure: bool = True
    max_attempts: Attempts = 3
    auth: Auth = "linear_token"
    url: ServerUrl = "https://api.linear.app/graphql"


class LinearIssues(LabelledItems):
    def __init__(self, settings: LinearSettings, access: SourceAccess) -> None:
        super().__init__(settings.labels, access, cleanup=settings.cleanup_on_failure)
        self.settings = settings
        self.api = JsonApi(
            base=settings.url,
            send=access.send,
            headers=lambda: {"Authorization": _authorization(access.secret)},
            now=access.now,
            sleep=access.sleep,
            error=LinearAPIError,
        )

    def _ask(self, query: str, *, repeat: bool = True, **variables: Any) -> ApiReply:
        """The answer with the fields of `data` as its data; an error in it is raised."""
        body = {"query": query, "variables": variables}
        reply = self.api.call("POST", "", body, accept=(400,), repeat=repeat)
        data = reply.data if isinstance(reply.data, dict) else {}
        errors = data.get("errors") or ([] if "data" in data else [{"message": "no data"}])
        if errors:
            raise self._error(errors[0])
        return ApiReply(reply.status, reply.headers, data["data"])

    def _error(self, error: Mapping[str, Any]) -> LinearAPIError:
        extensions = error.get("extensions") or {}
        limited = extensions.get("code") == "RATELIMITED"
        missing = "not found" in str(error.get("message", "")).lower()
        retry_at = self.access.now() + timedelta(seconds=LIMIT_SECONDS) if limited else None
        return LinearAPIError(
            f"Linear: {str(error.get('message', ''))[:200]}",
            status=404 if missing else 400,
            rate_limited=limited,
            retry_at=retry_at,
        )

    # --- fetching ---------------------------------------------------------------------------

    def fetch(self, options: FetchOptions) -> Fetched:
        limit = min(options.limit or PAGE_SIZE, LARGEST_PAGE)
        after = options.cursor or None
        reply = self._ask(_FETCH, filter=self._filter(), first=limit, after=after)
        page = reply.data["issues"]
        unwanted = {label.lower() for label in self.settings.exclude_labels}
        if not options.include_claimed:
            unwanted.add(self.names.in_progress.lower())
        wanted = {label.lower() for label in options.labels}
        found = [_candidate(issue) for issue in page["nodes"]]
        right = [
            each
            for each in found
            if not unwanted & (labels := {label.lower() for label in each.labels})
            and wanted <= labels
            and (not options.priorities or each.priority in options.priorities)
        ]
        info = page["pageInfo"]
        return Fetched(
            # Linear has the newest first.
            candidates=tuple(sorted(right, key=lambda each: each.created_at)),
            next_cursor=str(info["endCursor"]) if info["hasNextPage"] else "",
            at=reply.at or self.access.now(),
        )

    def _filter(self) -> dict[str, Any]:
        return {
            "team": {"key": {"eq": self.settings.team}},
            "labels": {"some": {"name": {"eqIgnoreCase": self.names.ready}}},
            "state": {"type": {"nin": list(_FINISHED)}},
        }

    # --- requests ---------------------------------------------------------------------------

    def key_of(self, item_id: str) -> str:
        match = _ID.fullmatch(item_id)
        if match is None:
            raise LinearAPIError(
                f"{item_id[:60]!r} is not the id of an issue: expected linear-KEY-1"
            )
        return match[1]

    def read_item(self, key: str) -> ItemState:
        issue = self._ask(_READ, id=key).data["issue"]
        is_open = issue["state"]["type"] not in _FINISHED
        return ItemState(item=_candidate(issue), is_open=is_open)

    def add_label(self, key: str, label: str) -> None:
        self._ask(_CHANGE_LABEL.format("issueAddLabel"), id=key, label=self._label_id(label))

    def remove_label(self, key: str, label: str) -> None:
        nodes = self._ask(_READ, id=key).data["issue"]["labels"]["nodes"]
        for node in nodes:
            if node["name"].lower() == label.lower():
                self._ask(_CHANGE_LABEL.format("issueRemoveLabel"), id=key, label=node["id"])

    def _label_id(self, label: str) -> str:
        """Of the team's label of this name, or of that of the workspace."""
        nodes = self._ask(_LABEL, filter={"name": {"eqIgnoreCase": label}}).data["issueLabels"]
        teams = {(node["team"] or {}).get("key", ""): node["id"] for node in nodes["nodes"]}
        found = teams.get(self.settings.team) or teams.get("")
        if found is None:
            raise LinearAPIError(
                f"the team {self.settings.team} has no label {label!r}: create it in Linear",
                status=404,
            )
        return str(found)

    def finish(self, key: str) -> None:
        wanted = {"team": {"key": {"eq": self.settings.team}}, "type": {"eq": "completed"}}
        states = self._ask(_STATES, filter=wanted).data["workflowStates"]["nodes"]
        if not states:
            raise LinearAPIError(f"the team {self.settings.team} has no completed state")
        first = min(states, key=lambda state: float(state["position"]))
        self._ask(_MOVE, id=key, state=first["id"])

    def marked(self, key: str) -> MarkedItem:
        return MarkedItem(
            read=lambda since: self._trusted(key, since),
            # Not repeated: a comment must not appear twice. The next attempt looks for it.
            write=lambda text: self._ask(_COMMENT, repeat=False, id=key, body=text),
            delete=lambda comment: self._ask(_UNCOMMENT, id=comment),
            sleep=self.access.sleep,
            # Linear keeps no HTML.
            form="`{}`",
        )

    def _details(self, key: str) -> Any:
        return self._ask(_DETAILS, id=key, last=MOST_COMMENTS).data["issue"]

    def _trusted(self, key: str, since: datetime) -> list[MarkedText]:
        texts = [
            MarkedText(str(each["id"]), _moment(each["createdAt"]), str(each["body"]))
            for each in self._details(key)["comments"]["nodes"]
            # Comments from other systems have no user, and guests see only what they are shown.
            if each["user"] and not each["user"].get("guest")
        ]
        recent = [each for each in texts if each.at.replace(microsecond=0) >= since]
        return sorted(recent, key=lambda each: (each.at, each.comment_id))

    def read_details(self, key: str) -> WorkDetails:
        issue = self._details(key)
        nodes = sorted(issue["comments"]["nodes"], key=lambda each: str(each["createdAt"]))
        comments = tuple(
            ItemComment(_name(each["user"]), str(each["createdAt"]), str(each["body"]))
            for each in nodes
            if not has_mark(str(each["body"]))
        )
        return WorkDetails(
            item=_candidate(issue),
            body=str(issue.get("description") or ""),
            author=_name(issue.get("creator")),
            comments=comments,
        )


# --- values -----------------------------------------------------------------------------------


def _authorization(secret: Mapping[str, str]) -> str:
    """A personal key stands alone, a token of OAuth does not."""
    token = secret.get("value", "")
    return token if token.startswith("lin_api_") else f"Bearer {token}"


def _candidate(issue: Mapping[str, Any]) -> Candidate:
    labels = tuple(str(node["name"]) for node in issue["labels"]["nodes"])
    return Candidate(
        id=f"linear-{issue['identifier']}",
        title=str(issue["title"]),
        url=str(issue["url"]),
        labels=labels,
        priority=_PRIORITIES.get(int(issue.get("priority") or 0)) or priority_of(labels),
        created_at=_moment(str(issue["createdAt"])).isoformat(),
    )


def _name(person: Any) -> str:
    return str(person.get("name") or "") if isinstance(person, dict) else ""


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _wakes(settings: LinearSettings, context: Mapping[str, Any]) -> bool:
    """The context has the organization; the team is a part of the URL."""
    of_team = f"/issue/{settings.team}-".lower() in str(context.get("url", "")).lower()
    return of_team and context.get("event") == "issues"


LINEAR = SourceKind(
    settings=LinearSettings,
    open=LinearIssues,
    name=lambda settings: settings.team,
    place=lambda settings: f"linear/{settings.team.lower()}",
    wakes=_wakes,
)
