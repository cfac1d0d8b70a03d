"""Requests to the API of a remote Drover, and its errors in words."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote

import httpx

from agents_app.errors import ConfigError, DroverError, NotFound, Refused
from agents_app.remote.address import TO_NAME_ONE, Address

CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
# Streams send a heartbeat every 30 seconds: a longer silence is a broken connection.
STREAM_SECONDS = 90.0
PAGE = 200


class RemoteUnreachable(DroverError):
    """The remote Drover does not answer; the same request may succeed later."""

    code = "unreachable"
    http_status = 503
    permanent = False


class NotAllowed(DroverError):
    """The token is wrong, or lacks the right to the request."""

    code = "not_allowed"
    http_status = 403


class Connection:
    """One client of the API; it may be used by several threads."""

    def __init__(self, address: Address, seconds: float = READ_SECONDS) -> None:
        self.address = address
        headers = {"Authorization": f"Bearer {address.token}"}
        timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        try:
            self._client = httpx.Client(
                base_url=f"{address.url}/v1", headers=headers, timeout=timeout
            )
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"the certificates in SSL_CERT_FILE cannot be read: {error}"
            ) from None

    def get(self, path: str, **query: Any) -> Any:
        return self._request("GET", path, params=_given(query)).json()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._request("POST", path, json=None if body is None else dict(body)).json()

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._request("PATCH", path, json=dict(body)).json()

    def pages(
        self, path: str, rows: str, *, most: int | None = None, **query: Any
    ) -> Iterator[Any]:
        """The rows of a list, over as many pages as needed."""
        cursor, count = None, 0
        while most is None or count < most:
            limit = PAGE if most is None else min(PAGE, most - count)
            page = self.get(path, limit=limit, cursor=cursor, **query)
            yield from page[rows]
            count += len(page[rows])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def stream(
        self, path: str, last_event_id: int | None, read_seconds: float | None = None
    ) -> AbstractContextManager[httpx.Response]:
        """The response of an event stream, which fails after a silence of `read_seconds`."""
        headers = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        silence = min(STREAM_SECONDS, read_seconds or STREAM_SECONDS)
        timeout = httpx.Timeout(silence, connect=CONNECT_SECONDS)
        return self._client.stream("GET", path, headers=headers, timeout=timeout)

    def _request(self, method: str, path: str, **values: Any) -> httpx.Response:
        try:
            response = self._client.request(method, path, **values)
        except httpx.HTTPError as error:
            raise unreachable(self.address.url, error) from None
        refuse_problem(self.address.url, response)
        return response


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


# --- errors ---------------------------------------------------------------------------------


def unreachable(url: str, error: Exception) -> RemoteUnreachable:
    """In one sentence: what failed, and what to check."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in reason or isinstance(error.__cause__, ssl.SSLError):
        return RemoteUnreachable(
            f"the certificate of {url} is not trusted: {reason}. If your organisation signs its "
            "certificates itself, name the file of its authority: SSL_CERT_FILE=FILE"
        )
    if "SSL" in reason:
        return RemoteUnreachable(f"{url} does not speak TLS: {reason}. Is it http://?")
    if isinstance(error, httpx.TimeoutException):
        return RemoteUnreachable(f"{url} did not answer in time: is the address right?")
    return RemoteUnreachable(f"{url} cannot be reached: {reason}. Does Drover run there?")


def refuse_problem(url: str, response: httpx.Response) -> None:
    """Raise the error of the response, if it is one."""
    if response.is_success and response.headers.get("content-type", "").startswith(
        ("application/json", "text/event-stream", "text/plain")
    ):
        return
    status, message = response.status_code, _message(response)
    if message is None:
        raise RemoteUnreachable(
            f"{url} answered {status}, but not as Drover does: does DROVER_URL name the address of "
            "Drover, without a path?"
        )
    if status == httpx.codes.UNAUTHORIZED:
        raise NotAllowed(f"{url} does not know the token, or it has expired: {TO_NAME_ONE}")
    if status == httpx.codes.FORBIDDEN:
        raise NotAllowed(f"{url} refuses this for the token: {message}")
    if status == httpx.codes.NOT_FOUND:
        raise NotFound(message)
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
        raise RemoteUnreachable(f"{url} cannot serve the request now: {message}")
    raise Refused(message)


def _message(response: httpx.Response) -> str | None:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return None
