"""A scripted GitHub on loopback: issues, labels, comments, ETags, rate limits and late answers."""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Json = dict[str, Any]
Reply = tuple[int, dict[str, str], Any]
TOKEN = "a-token-for-tests"


def now_text() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Issue:
    number: int
    title: str
    labels: list[str]
    body: str = ""
    state: str = "open"
    pull_request: bool = False
    comments: list[Json] = field(default_factory=list)
    # The labels after each change, to see that none was wrong in between.
    history: list[list[str]] = field(default_factory=list)

    def as_json(self) -> Json:
        more = {"pull_request": {"url": "a pull request"}} if self.pull_request else {}
        return {
            "number": self.number,
            "title": self.title,
            "body": self.body,
            "state": self.state,
            "html_url": f"https://github.test/o/r/issues/{self.number}",
            "labels": [{"name": label} for label in self.labels],
            "created_at": f"2026-01-01T00:{self.number:02}:00Z",
            "user": {"login": "ann", "type": "User"},
            "comments": len(self.comments),
            **more,
        }


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class Fault:
    """Answers the next requests that match instead of GitHub, or after it if `applied`."""

    pattern: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    count: int = 1
    applied: bool = False

    def fits(self, request: Request) -> bool:
        return self.count > 0 and re.search(self.pattern, str(request)) is not None


@dataclass
class GitHubServer:
    port: int = 0
    issues: dict[int, Issue] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    latency_seconds: float = 0.0
    # Called after a request has taken effect and before its answer is sent.
    after: Callable[[Request], None] = lambda _request: None
    lock: threading.Lock = field(default_factory=threading.Lock)
    comment_id: int = 1000
    tokens: set[str] = field(default_factory=lambda: {TOKEN})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, number: int, title: str = "", labels: tuple[str, ...] = ("ready",), **more: Any):
        self.issues[number] = Issue(number, title or f"issue {number}", list(labels), **more)
        return self.issues[number]

    def said(self, number: int) -> list[str]:
        return [comment["body"] for comment in self.issues[number].comments]

    def made(self) -> list[str]:
        return [str(request) for request in self.requests]

    def answer(self, request: Request) -> Reply:
        time.sleep(self.latency_seconds)
        with self.lock:
            self.requests.append(request)
            fault = next((each for each in self.faults if each.fits(request)), None)
            if fault is not None:
                fault.count -= 1
            reply: Reply = (401, {}, {"message": "Bad credentials"})
            if fault is not None and not fault.applied:
                reply = fault.status, fault.headers, {"message": "a fault of the test"}
            elif request.token in self.tokens:
                reply = self._apply(request)
        self.after(request)
        if fault is not None and fault.applied:
            return fault.status, fault.headers, {"message": "a fault of the test"}
        return reply

    # --- what GitHub does -----------------------------------------------------------------------

    def _apply(self, request: Request) -> Reply:
        parts = request.path.removeprefix("/repos/o/r/issues").strip("/").split("/")
        if parts == [""]:
            return self._list(request)
        if parts[0] == "comments":
            return self._delete_comment(int(parts[1]))
        issue = self.issues.get(int(parts[0]))
        if issue is None:
            return 404, {}, {"message": "Not Found"}
        if len(parts) == 1:
            if request.method == "PATCH":
                issue.state = request.body["state"]
            return 200, {}, issue.as_json()
        if parts[1] == "comments":
            return self._comments(issue, request)
        return self._labels(issue, request, unquote(parts[2]) if len(parts) > 2 else "")

    def _list(self, request: Request) -> Reply:
        wanted = request.query["labels"][0]
        size, page = int(request.query["per_page"][0]), int(request.query.get("page", ["1"])[0])
        every = [
            issue
            for _, issue in sorted(self.issues.items())
            if issue.state == "open" and wanted in issue.labels
        ]
        found = [issue.as_json() for issue in every[(page - 1) * size : page * size]]
        etag = f'W/"{hashlib.sha256(json.dumps(found).encode()).hexdigest()}"'
        if request.headers.get("if-none-match") == etag:
            return 304, {"ETag": etag}, None
        more = page * size < len(every)
        link = {"Link": f'<{self.url}/?page={page + 1}>; rel="next"'} if more else {}
        return 200, {"ETag": etag, **link}, found

    def _comments(self, issue: Issue, request: Request) -> Reply:
        if request.method == "GET":
            size, page = int(request.query["per_page"][0]), int(request.query["page"][0])
            since = request.query.get("since", [""])[0]
            found = [each for each in issue.comments if each["created_at"] >= since]
            return 200, {}, found[(page - 1) * size : page * size]
        return 201, {}, self.comment(issue.number, request.body["body"])

    def comment(
        self, number: int, body: str, association: str = "COLLABORATOR", login: str = "drover"
    ) -> Json:
        self.comment_id += 1
        comment = {
            "id": self.comment_id,
            "body": body,
            "created_at": now_text(),
            "author_association": association,
            "user": {"login": login, "type": "User"},
        }
        self.issues[number].comments.append(comment)
        return comment

    def _delete_comment(self, key: int) -> Reply:
        for issue in self.issues.values():
            issue.comments = [each for each in issue.comments if each["id"] != key]
        return 204, {}, None

    def _labels(self, issue: Issue, request: Request, label: str) -> Reply:
        if request.method == "POST":
            issue.labels += [name for name in request.body["labels"] if name not in issue.labels]
        elif label not in issue.labels:
            return 404, {}, {"message": "Label does not exist"}
        else:
            issue.labels.remove(label)
        issue.history.append(list(issue.labels))
        return 200, {}, [{"name": name} for name in issue.labels]


@contextmanager
def serving_github() -> Iterator[GitHubServer]:
    github = GitHubServer()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(data) if data else {}
            request = Request(self.command, parts.path, parse_qs(parts.query), headers, body)
            with suppress(OSError):
                self._send(*github.answer(request))
            self.close_connection = True

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

        def _send(self, status: int, headers: dict[str, str], answer: Any) -> None:
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that was killed hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    github.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield github
    server.shutdown()
    server.server_close()
