"""JSON requests to one API, repeated as retry.py says; the HTTP client is passed in."""

import json
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from agents_app.errors import DroverError
from agents_app.work_sources.kinds.retry import (
    LONGEST_DELAY_MS,
    MAX_RETRIES,
    backoff_ms,
    is_rate_limited,
    is_retryable,
)

JITTER = 0.1
LONGEST_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


# Method, URL, headers and body to the answer; raises a DroverError if there is none.
Send = Callable[[str, str, Mapping[str, str], bytes | None], HttpReply]


class WorkSourceError(DroverError):
    """A work source cannot be read or changed now; `retry_at` is when it may work again."""

    code = "work_source"
    permanent = False

    def __init__(self, message: str, *, retry_at: datetime | None = None) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class ApiError(WorkSourceError):
    """An API has refused a request, or has not answered; `status` is None without an answer."""

    code = "work_source_api"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        rate_limited: bool = False,
        retry_at: datetime | None = None,
    ) -> None:
        super().__init__(message, retry_at=retry_at)
        self.status = status
        self.rate_limited = rate_limited

    @property
    def is_retryable(self) -> bool:
        return is_retryable(self.status, self.rate_limited)


@dataclass(frozen=True, slots=True)
class ApiReply:
    status: int
    headers: Mapping[str, str]
    data: Any

    @property
    def at(self) -> datetime | None:
        """The time of the answer by the clock of the server."""
        try:
            return parsedate_to_datetime(self.headers.get("date", "")).astimezone(UTC)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonApi:
    """`headers` is called for each request, because a token may expire."""

    base: str
    send: Send
    headers: Callable[[], Mapping[str, str]]
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    error: type[ApiError] = ApiError

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        accept: Collection[int] = (),
        repeat: bool = True,
    ) -> ApiReply:
        """The answer, if its status is 2xx, 304 or one of `accept`.

        Without `repeat` the request is sent once: it must not take effect twice.
        """
        attempt = 0
        while True:
            try:
                return self._send(method, path, body, headers or {}, accept)
            except ApiError as error:
                wait_ms = self._delay_ms(error, attempt)
                if not (repeat and error.is_retryable) or wait_ms is None:
                    raise
                self.sleep(wait_ms / 1000)
                attempt += 1

    def _delay_ms(self, error: ApiError, attempt: int) -> float | None:
        """None: no further attempt, because there were enough or the limit ends too late."""
        reset_ms = None
        if error.retry_at is not None:
            reset_ms = (error.retry_at - self.now()).total_seconds() * 1000
        if attempt >= MAX_RETRIES or (reset_ms is not None and reset_ms > LONGEST_DELAY_MS):
            return None
        return backoff_ms(attempt, reset_ms, JITTER * random.random())  # noqa: S311

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str],
        accept: Collection[int],
    ) -> ApiReply:
        own = {"Accept": "application/json", **self.headers(), **headers}
        data = None
        if body is not None:
            own["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        try:
            reply = self.send(method, f"{self.base}{path}", own, data)
        except DroverError as error:
            raise self.error(f"{method} {path}: {error}") from None
        if 200 <= reply.status < 300 or reply.status == 304 or reply.status in accept:
            return ApiReply(reply.status, reply.headers, self._read(reply, method, path, accept))
        raise self._refusal(reply, method, path)

    def _read(self, reply: HttpReply, method: str, path: str, accept: Collection[int]) -> Any:
        if not reply.body or reply.status == 304:
            return None
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            if reply.status in accept:
                return None
            raise self.error(f"{method} {path}: the answer is not JSON", status=502) from None

    def _refusal(self, reply: HttpReply, method: str, path: str) -> ApiError:
        headers = reply.headers
        limited = is_rate_limited(
            reply.status, headers.get("x-ratelimit-remaining"), headers.get("retry-after")
        )
        return self.error(
            f"{method} {path}: status {reply.status}{_message(reply.body)}",
            status=reply.status,
            rate_limited=limited,
            retry_at=self._retry_at(headers) if limited else None,
        )

    def _retry_at(self, headers: Mapping[str, str]) -> datetime | None:
        after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
        if after.isascii() and after.isdecimal():
            return self.now() + timedelta(seconds=min(int(after), 86_400))
        if reset.isascii() and reset.isdecimal() and len(reset) <= 11:
            return datetime.fromtimestamp(int(reset), UTC)
        return None


def _message(body: bytes) -> str:
    """The `message` of an error, which GitHub and others send."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    found = data.get("message") if isinstance(data, dict) else None
    return f": {found[:LONGEST_MESSAGE]}" if isinstance(found, str) and found else ""
